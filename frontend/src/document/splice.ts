import type { Catalog } from "@/api/types";
import { accepts, inputPort, outputPort, preferredInput } from "./canConnect";
import { portRef } from "./edges";
import type { Edge, LoopDocument } from "./types";

export interface Splice {
  input: string;
  output: string;
}

/** Null where the kind does not take what the edge carries, or gives nothing that its end takes. */
export function spliceOf(
  catalog: Catalog,
  document: LoopDocument,
  edge: Edge,
  kind: string | undefined,
): Splice | null {
  const info = catalog.kinds[kind ?? ""];
  const source = outputPort(catalog, document, portRef(edge.from));
  const target = inputPort(catalog, document, portRef(edge.to));
  if (!info || !source || !target) return null;
  const inputs = info.inputs.filter((port) => accepts(catalog, port.type, source.type));
  const outputs = info.outputs.filter((port) => accepts(catalog, target.type, port.type));
  const input = preferredInput(inputs, source.type);
  const output = outputs.find((port) => port.type === target.type) ?? outputs[0];
  return input && output ? { input: input.name, output: output.name } : null;
}

export function isUnconnected(document: LoopDocument, node: string): boolean {
  return document.edges.every(
    (edge) => portRef(edge.from).node !== node && portRef(edge.to).node !== node,
  );
}
