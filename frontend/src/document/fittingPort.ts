import type { Catalog, KindInfo } from "@/api/types";
import { canConnect, outputPort, preferredInput } from "./canConnect";
import type { LoopDocument, PortRef } from "./types";

const NEW = "";

/** The port of a new node that an edge from `from` would go to, or null where it cannot be joined. */
export function fittingPort(
  catalog: Catalog,
  document: LoopDocument,
  from: PortRef & { isOutput: boolean },
  kind: KindInfo,
): string | null {
  const nodes = { ...document.nodes, [NEW]: { kind: kind.kind } };
  const canJoin = (port: string) => {
    const own = { node: NEW, port };
    const [source, target] = from.isOutput ? [from, own] : [own, from];
    return canConnect(catalog, { ...document, nodes }, source, target).ok;
  };
  if (!from.isOutput) return kind.outputs.find((port) => canJoin(port.name))?.name ?? null;
  const type = outputPort(catalog, document, from)?.type;
  const fits = kind.inputs.filter((port) => canJoin(port.name));
  return preferredInput(fits, type)?.name ?? null;
}
