/** Connections that a new node begins with, where there is only one that makes sense. Pure. */
import type { Catalog } from "@/api/types";
import { canConnect } from "./canConnect";
import { edgeFacts, portText } from "./edges";
import type { Edge, LoopDocument, NodeData, PortRef } from "./types";

/** Inputs that need an edge and have none, of nodes that something flows out of. */
export function lacking(catalog: Catalog, document: LoopDocument): (PortRef & { type: string })[] {
  const { inputs, outputs } = edgeFacts(document.edges);
  return Object.entries(document.nodes).flatMap(([node, { kind }]) => {
    const info = catalog.kinds[kind];
    const isUsed = info?.outputs.some(({ name }) => outputs.has(`${node}.${name}`));
    if (!info || !isUsed) return [];
    return info.inputs
      .filter(({ name, required }) => Boolean(required) && !inputs.has(`${node}.${name}`))
      .map(({ name, type }) => ({ node, port: name, type }));
  });
}

/** Of a node that takes nothing, such as a dataset: an edge to the one input of the loop that lacks what it gives. */
export function naturalEdges(
  catalog: Catalog,
  document: LoopDocument,
  id: string,
  data: NodeData,
): Edge[] {
  const info = catalog.kinds[data.kind];
  if (!info || info.inputs.length > 0) return [];
  const whole = { ...document, nodes: { ...document.nodes, [id]: data } };
  const found = info.outputs.flatMap((port) =>
    lacking(catalog, document)
      .filter(({ type }) => type === port.type)
      .map((target): [PortRef, PortRef] => [{ node: id, port: port.name }, target])
      .filter(([from, to]) => canConnect(catalog, whole, from, to).ok),
  );
  const [only, ...more] = found;
  return only && more.length === 0 ? [{ from: portText(only[0]), to: portText(only[1]) }] : [];
}
