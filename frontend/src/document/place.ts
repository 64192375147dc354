/**
 * Where a path in words of the spec (`nodes.actor.model`, `edges.outcome.weight`, `schedule.phases.1`)
 * lies in the document. Pure.
 */
import { type Path, parsePath } from "@/lib/paths";
import type { LoopDocument } from "./types";
import { readIndex } from "./unread";

export interface Place {
  root: object;
  path: Path;
}

export function readDocumentPath(document: LoopDocument, text: string): Path {
  const { rest, nodes, edges } = document;
  return parsePath(text, { ...rest, nodes, edges });
}

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
