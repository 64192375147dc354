/** Between the server's spec (JSON in words of the YAML) and the document. Pure. */
import type { Json, JsonObject } from "@/api/types";
import { isObject } from "@/lib/paths";
import { readEdge, writeEdge } from "./edges";
import type { Edge, LoopDocument, NodeData, Point, Unread } from "./types";
import { ALL_READ, isAllRead, mixEdges } from "./unread";

/** A node of which the file does not say what it is. */
const NO_KIND = "";

export function fromSpec(spec: JsonObject, layout?: JsonObject | null): LoopDocument {
  const { name, nodes, edges, layout: ownLayout, ...rest } = spec;
  const read: Record<string, NodeData> = {};
  const unread: Unread = { nodes: {}, edges: [] };
  if (isObject(nodes)) readNodes(nodes, read, unread);
  else if (nodes !== undefined) rest.nodes = nodes;
  const readEdges: Edge[] = [];
  if (Array.isArray(edges)) readList(edges, readEdges, unread);
  else if (edges !== undefined) rest.edges = edges;
  return {
    name: typeof name === "string" ? name : "untitled",
    nodes: read,
    edges: readEdges,
    layout: readLayout(layout ?? ownLayout, read),
    rest,
    ...(isAllRead(unread) ? {} : { unread }),
  };
}

function readNodes(nodes: JsonObject, read: Record<string, NodeData>, unread: Unread): void {
  for (const [id, node] of Object.entries(nodes)) {
    const kind = isObject(node) ? (node.kind ?? NO_KIND) : null;
    if (isObject(node) && typeof kind === "string") read[id] = { ...node, kind };
    else if (node !== undefined) unread.nodes[id] = node;
  }
}

function readList(edges: readonly Json[], read: Edge[], unread: Unread): void {
  for (const [at, value] of edges.entries()) {
    const edge = readEdge(value);
    if (edge) read.push(edge);
    else unread.edges.push({ at, value });
  }
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
  const { unread = ALL_READ } = document;
  const { coloop, mode, description, nodes: oddNodes, edges: oddEdges, ...rest } = document.rest;
  const read = Object.entries(document.nodes).map(([id, node]) => [id, writeNode(node)]);
  const nodes = { ...unread.nodes, ...Object.fromEntries(read) };
  const edges = mixEdges(document.edges.map(writeEdge), unread);
  const spec: JsonObject = { coloop: coloop ?? 1, name: document.name };
  if (mode !== undefined) spec.mode = mode;
  if (description !== undefined) spec.description = description;
  // A section of another shape stays until there is something to put in its place.
  spec.nodes = oddNodes !== undefined && Object.keys(nodes).length === 0 ? oddNodes : nodes;
  spec.edges = oddEdges !== undefined && edges.length === 0 ? oddEdges : edges;
  Object.assign(spec, rest);
  if (Object.keys(document.layout).length > 0) spec.layout = document.layout as unknown as Json;
  return spec;
}

function writeNode({ kind, ...data }: NodeData): JsonObject {
  return kind === NO_KIND ? data : { kind, ...data };
}
