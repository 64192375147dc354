/** Between the server's spec (JSON in words of the YAML) and the document. Pure. */
import type { Json, JsonObject } from "@/api/types";
import { isObject } from "@/lib/paths";
import { readEdge, writeEdge } from "./edges";
import type { Edge, LoopDocument, NodeData, Point } from "./types";

export function fromSpec(spec: JsonObject, layout?: JsonObject | null): LoopDocument {
  const { name, nodes, edges, layout: ownLayout, ...rest } = spec;
  const readNodes: Record<string, NodeData> = {};
  for (const [id, node] of Object.entries(isObject(nodes) ? nodes : {})) {
    if (isObject(node)) readNodes[id] = { ...node, kind: String(node.kind ?? "") };
  }
  const readEdges = (Array.isArray(edges) ? edges : [])
    .map((edge) => readEdge(edge))
    .filter((edge): edge is Edge => edge !== null);
  return {
    name: typeof name === "string" ? name : "untitled",
    nodes: readNodes,
    edges: readEdges,
    layout: readLayout(layout ?? ownLayout, readNodes),
    rest,
  };
}

/** A document that was kept outside of the page, by whatever version of it: its edges have ends. */
export function mendDocument(document: LoopDocument): LoopDocument {
  const edges = document.edges
    .map((edge) => readEdge(edge))
    .filter((edge): edge is Edge => edge !== null);
  return { ...document, edges };
}

function readLayout(value: unknown, nodes: Record<string, NodeData>): Record<string, Point> {
  const layout: Record<string, Point> = {};
  if (!isObject(value)) return layout;
  for (const [id, point] of Object.entries(value)) {
    if (!(id in nodes) || !Array.isArray(point)) continue;
    const [x, y] = point;
    if (typeof x === "number" && typeof y === "number") layout[id] = [x, y];
  }
  return layout;
}

export function toSpec(document: LoopDocument): JsonObject {
  const { coloop, mode, description, ...rest } = document.rest;
  const spec: JsonObject = { coloop: coloop ?? 1, name: document.name };
  if (mode !== undefined) spec.mode = mode;
  if (description !== undefined) spec.description = description;
  spec.nodes = document.nodes;
  spec.edges = document.edges.map(writeEdge);
  Object.assign(spec, rest);
  if (Object.keys(document.layout).length > 0) spec.layout = document.layout as unknown as Json;
  return spec;
}
