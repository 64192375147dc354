/**
 * Where things of the file stand in the document. What is no node or edge to the page, such as a line with a typing
 * error, is kept as it was and written back, and takes its place in the file's list of edges, by which the server
 * counts. Pure.
 */
import type { Json } from "@/api/types";
import { type Path, parsePath } from "@/lib/paths";
import type { LoopDocument, Unread } from "./types";

export const ALL_READ: Unread = { nodes: {}, edges: [] };

export function isAllRead({ nodes, edges, layout }: Unread): boolean {
  return Object.keys(nodes).length === 0 && edges.length === 0 && layout === undefined;
}

/** The file's list of edges: those that were not read stand where they stood, or at the end. */
export function mixEdges(edges: readonly Json[], unread: Unread): Json[] {
  const mixed = [...edges];
  for (const { at, value } of unread.edges) mixed.splice(at, 0, value);
  return mixed;
}

/** From a position in the document's list of edges to the file's. */
export function listedIndex(document: LoopDocument, index: number): number {
  let listed = index;
  for (const at of unreadPlaces(document)) if (at <= listed) listed += 1;
  return listed;
}

/** From a position in the file's list of edges to the document's; -1 where the file's was not read. */
export function readIndex(document: LoopDocument, listed: number): number {
  const places = unreadPlaces(document);
  if (places.includes(listed)) return -1;
  return listed - places.filter((at) => at < listed).length;
}

function unreadPlaces({ edges, unread = ALL_READ }: LoopDocument): number[] {
  return unread.edges.map(({ at }, count) => Math.min(at, edges.length + count));
}

export interface Place {
  root: object;
  path: Path;
}

export function readDocumentPath(document: LoopDocument, text: string): Path {
  const { rest, nodes, edges } = document;
  return parsePath(text, { ...rest, nodes, edges });
}

/** Where a path in words of the spec (`nodes.actor.model`, `edges.outcome.weight`) lies in the document. */
export function findPlace(document: LoopDocument, path: Path): Place {
  const [head, ...tail] = path;
  if (head === "edges" && tail.length > 0) {
    const named = document.edges.findIndex((edge) => edge.id === String(tail[0]));
    const index = named >= 0 ? named : readIndex(document, Number(tail[0]));
    return { root: document, path: ["edges", index, ...tail.slice(1)] };
  }
  if (head === "nodes" || head === "edges" || head === "layout" || head === "name") {
    return { root: document, path };
  }
  return { root: document.rest, path };
}
