import { isDraft } from "immer";
import type { Json } from "@/api/types";
import { isObject } from "@/lib/paths";
import { remember } from "@/lib/remember";
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

export function runKey(edge: Edge): string {
  return typeof edge.id === "string" ? edge.id : `${edge.from}->${edge.to}`;
}

export interface EdgeFacts {
  keys: readonly string[];
  index: ReadonlyMap<string, number>;
  outputs: ReadonlySet<string>;
  inputs: ReadonlySet<string>;
}

const rememberedFacts = remember(readFacts);

export function edgeFacts(edges: readonly Edge[]): EdgeFacts {
  // A draft changes under its name, so nothing is remembered of it.
  return isDraft(edges) ? readFacts(edges) : rememberedFacts(edges);
}

function readFacts(edges: readonly Edge[]): EdgeFacts {
  const keys: string[] = [];
  const seen = new Map<string, number>();
  const index = new Map<string, number>();
  const outputs = new Set<string>();
  const inputs = new Set<string>();
  for (const [place, edge] of edges.entries()) {
    const ends = `${edge.from}->${edge.to}`;
    const count = seen.get(ends) ?? 0;
    seen.set(ends, count + 1);
    const key = count === 0 ? ends : `${ends}#${count}`;
    keys.push(key);
    index.set(key, place);
    outputs.add(edge.from);
    inputs.add(edge.to);
  }
  return { keys, index, outputs, inputs };
}

/** What tells an edge from all others: its ends; a second edge between the same ports has a number. */
export function edgeKeys(edges: readonly Edge[]): readonly string[] {
  return edgeFacts(edges).keys;
}

export function edgeIndex(document: LoopDocument, key: string): number {
  return edgeFacts(document.edges).index.get(key) ?? -1;
}

/** "a.x -> b.y", or an object with options, as YAML has them. */
export function readEdge(value: Json | undefined): Edge | null {
  if (typeof value === "string") {
    const [from, to, ...more] = value.split("->").map((end) => end.trim());
    return from && to && more.length === 0 ? { from, to } : null;
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
