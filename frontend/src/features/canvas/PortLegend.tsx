import { outputPort } from "@/document/canConnect";
import { useDocument, useOpenLoop } from "@/document/context";
import { portRef } from "@/document/edges";
import { formatName } from "@/lib/format";
import { PortMark } from "@/ui/PortMark";

const MAX = 5;

/** What the signs of this loop's edges stand for. */
export function PortLegend() {
  const { catalog } = useOpenLoop();
  const types = useDocument(({ document }) => {
    const used = document.edges.map(
      (edge) => outputPort(catalog, document, portRef(edge.from))?.type,
    );
    return [...new Set(used)].filter(Boolean).slice(0, MAX).join(" ");
  });
  if (types === "") return null;
  return (
    <div className="canvas-legend" role="group" aria-label="What the symbols mean">
      {types.split(" ").map((name) => (
        <span key={name} title={catalog.port_types[name]?.help}>
          <PortMark
            shape={catalog.port_types[name]?.shape ?? "circle"}
            color={catalog.port_types[name]?.color ?? ""}
            isHandle={catalog.port_types[name]?.handle ?? false}
            size={10}
          />
          {formatName(name)}
        </span>
      ))}
    </div>
  );
}
