/** Edges: their ends, keys and text form. Pure. */
import type { Json } from "@/api/types";
import { isObject } from "@/lib/paths";
import type { Edge, LoopDocument, PortRef } from "./types";

export function portRef(text: string): PortRef {
  const dot = text.indexOf(".");
  return dot < 0
    ? { node: text, port: "" }
    : { node: text.slice(0, dot), port: text.slice(dot + 1) };
}

export function portText(ref: PortRef): string {
  return `${ref.node}.${ref.port}`;
}

/** What tells an edge from all others: its ends; a second edge between the same ports has a number. */
export function edgeKeys(edges: readonly Edge[]): string[] {
  const seen = new Map<string, number>();
  return edges.map((edge) => {
    const key = `${edge.from}->${edge.to}`;
    const count = seen.get(key) ?? 0;
    seen.set(key, count + 1);
    return count === 0 ? key : `${key}#${count}`;
  });
}

export function edgeIndex(document: LoopDocument, key: string): number {
  return edgeKeys(document.edges).indexOf(key);
}

/** "a.x -> b.y", or an object with options, as YAML has them. */
export function readEdge(value: Json | undefined): Edge | null {
  if (typeof value === "string") {
    const [from, to] = value.split("->").map((end) => end.trim());
    return from && to ? { from, to } : null;
  }
  if (!isObject(value)) return null;
  const { from, to, source, target, ...options } = value;
  const start = endText(from ?? source);
  const end = endText(to ?? target);
  if (start === null || end === null) return null;
  const edge: Edge = { from: start, to: end };
  for (const [name, option] of Object.entries(options)) {
    if (option !== undefined && option !== null) edge[name] = option;
  }
  return edge;
}

function endText(value: Json | undefined): string | null {
  if (typeof value === "string") return value;
  if (isObject(value) && typeof value.node === "string" && typeof value.port === "string") {
    return portText({ node: value.node, port: value.port });
  }
  return null;
}

export function writeEdge(edge: Edge): Json {
  const options = Object.keys(edge).filter((key) => key !== "from" && key !== "to");
  return options.length === 0 ? `${edge.from} -> ${edge.to}` : { ...edge };
}
