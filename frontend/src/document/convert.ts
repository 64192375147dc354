/** Between the server's spec (JSON in words of the YAML) and the document. Pure. */
import type { Json, JsonObject } from "@/api/types";
import { IDENTITIES } from "@/lib/colors";
import { isObject } from "@/lib/paths";
import { readEdge, writeEdge } from "./edges";
import { GROUPS, readGroups } from "./groups";
import { NOTES, readNotes } from "./notes";
import { ALL_READ, isAllRead, mixEdges } from "./place";
import type { Edge, LoopDocument, NodeData, Point, Unread } from "./types";

const COLORS = "$colors";
const NO_KIND = "";

export function fromSpec(spec: JsonObject, layout?: JsonObject | null): LoopDocument {
  const { name, nodes, edges, layout: ownLayout, ...rest } = spec;
  const places = layout ?? ownLayout;
  const notes = isObject(places) ? readNotes(places[NOTES]) : null;
  const groups = isObject(places) ? readGroups(places[GROUPS]) : null;
  const read: Record<string, NodeData> = {};
  const unread: Unread = { nodes: {}, edges: [] };
  if (isObject(nodes)) readNodes(nodes, read, unread);
  else if (nodes !== undefined) rest.nodes = nodes;
  const readEdges: Edge[] = [];
  if (Array.isArray(edges)) readList(edges, readEdges, unread);
  else if (edges !== undefined) rest.edges = edges;
  const identities = readIdentities(places, read);
  return {
    name: typeof name === "string" ? name : "untitled",
    nodes: read,
    edges: readEdges,
    layout: readLayout(places, read, unread),
    ...(identities ? { identities } : {}),
    ...(notes ? { notes } : {}),
    ...(groups ? { groups } : {}),
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
  return { ...document, edges: document.edges.flatMap((edge) => readEdge(edge) ?? []) };
}

function readLayout(
  value: unknown,
  nodes: Record<string, NodeData>,
  unread: Unread,
): Record<string, Point> {
  const layout: Record<string, Point> = {};
  const others: JsonObject = {};
  for (const [id, place] of Object.entries(isObject(value) ? value : {})) {
    if (id === COLORS || (id === NOTES && readNotes(place))) continue;
    if (id === GROUPS && readGroups(place)) continue;
    const [x, y, ...more] = Array.isArray(place) ? place : [];
    const isPoint = id in nodes && typeof x === "number" && typeof y === "number";
    if (isPoint) layout[id] = [x, y];
    if (!isPoint || more.length > 0) others[id] = place;
  }
  if (Object.keys(others).length > 0) unread.layout = others;
  return layout;
}

function readIdentities(
  value: unknown,
  nodes: Record<string, NodeData>,
): Record<string, number> | null {
  const kept = isObject(value) ? value[COLORS] : undefined;
  if (!isObject(kept)) return null;
  const isIdentity = ([id, number]: [string, unknown]) =>
    id in nodes && Number.isInteger(number) && Number(number) >= 1 && Number(number) <= IDENTITIES;
  return Object.fromEntries(Object.entries(kept).filter(isIdentity)) as Record<string, number>;
}

function writeLayout({
  layout,
  nodes,
  identities = {},
  notes,
  groups,
  unread = ALL_READ,
}: LoopDocument): JsonObject {
  const others = { ...unread.layout };
  for (const [id, old] of Object.entries(others)) {
    if (Array.isArray(old) && typeof old[0] === "number" && !(id in nodes || id in unread.nodes)) {
      delete others[id];
    }
  }
  const places = Object.entries(layout).map(([id, point]) => {
    const old = others[id];
    return [id, Array.isArray(old) ? [...point, ...old.slice(2)] : point];
  });
  return {
    ...others,
    ...(Object.fromEntries(places) as JsonObject),
    ...(Object.keys(identities).length > 0 ? { [COLORS]: identities } : {}),
    ...(notes ? { [NOTES]: notes as unknown as JsonObject } : {}),
    ...(groups ? { [GROUPS]: groups as unknown as JsonObject } : {}),
  };
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
  const layout = writeLayout(document);
  if (Object.keys(layout).length > 0) spec.layout = layout;
  return spec;
}

function writeNode({ kind, ...data }: NodeData): JsonObject {
  return kind === NO_KIND ? data : { kind, ...data };
}
