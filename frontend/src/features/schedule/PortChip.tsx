import { inputPort } from "@/document/canConnect";
import { useCatalog, useDocument } from "@/document/context";
import { portRef } from "@/document/edges";
import { PortMark } from "@/ui/PortMark";

/** A teaching port that a phase learns from. */
export function PortChip({ name }: { name: string }) {
  const catalog = useCatalog();
  const type = useDocument((state) => inputPort(catalog, state.document, portRef(name))?.type);
  const portType = catalog.port_types[type ?? ""];
  return (
    <span
      className="inline-flex h-5 max-w-full items-center gap-1 rounded-full border border-line bg-surface px-1.5 text-2xs"
      title={`Learns from ${name}`}
    >
      <PortMark
        shape={portType?.shape ?? "circle"}
        color={portType?.color ?? ""}
        isHandle={false}
        size={9}
      />
      <span className="truncate">{name}</span>
    </span>
  );
}
