/**
 * Two versions of a loop that came of one: what each changed, both together, and where they want different
 * things of one place. Nodes are told by their ids, edges by their ends; a list is one value unless its length is
 * the same everywhere. Where a box stands is never worth a question. Pure.
 */
import type { Catalog, Json, JsonObject } from "@/api/types";
import { edgeKeys, portRef } from "@/document/edges";
import type { Edge, LoopDocument, NodeData } from "@/document/types";
import { deepEqual, isObject, joinPath, type Path } from "@/lib/paths";

export type Side = "mine" | "theirs";

/** One place where a version differs from what it came of; `undefined`: nothing was, or is, there. */
export interface Difference {
  path: Path;
  before: Json | undefined;
  after: Json | undefined;
}

export interface Collision {
  key: string;
  path: Path;
  base: Json | undefined;
  mine: Json | undefined;
  theirs: Json | undefined;
}

export interface Merge {
  mine: Difference[];
  theirs: Difference[];
  collisions: Collision[];
  /** The document with these places decided; what is not chosen is mine. */
  decide: (choices: Readonly<Record<string, Side>>) => LoopDocument;
}

/** Whether what stands at a place is one thing, of which no half may be taken: a shape that was exchanged. */
export type IsOneThing = (path: Path, mine: Json, theirs: Json) => boolean;

type Parts = Record<string, Json | undefined>;
type Versions<T> = Record<"base" | Side, T>;

export function mergeDocuments(
  base: LoopDocument,
  mine: LoopDocument,
  theirs: LoopDocument,
  isOneThing: IsOneThing = () => false,
): Merge {
  const documents = { base, mine, theirs };
  const parts = { base: partsOf(base), mine: partsOf(mine), theirs: partsOf(theirs) };
  const collisions: Collision[] = [];
  const decide = (choices: Readonly<Record<string, Side>>, note: (one: Collision) => void) => {
    const choose: Choose = (path, values) => {
      const key = joinPath(path);
      note({ key, path, ...values });
      return values[choices[key] ?? "mine"];
    };
    return withEnds(choose, mixed([], parts, choose, isOneThing), parts, documents);
  };
  decide({}, (collision) => collisions.push(collision));
  return {
    mine: differences([], parts.base, parts.mine),
    theirs: differences([], parts.base, parts.theirs),
    collisions,
    decide: (choices) => decide(choices, () => {}),
  };
}

export function documentDifferences(base: LoopDocument, other: LoopDocument): Difference[] {
  return differences([], partsOf(base), partsOf(other));
}

/** A document as plain objects: edges by their keys. What has an order of its own keeps it elsewhere. */
function partsOf(document: LoopDocument): Parts {
  const keys = edgeKeys(document.edges);
  const edges = document.edges.map((edge, at) => [keys[at] ?? "", edge as JsonObject]);
  return {
    ...document.rest,
    name: document.name,
    nodes: document.nodes,
    edges: Object.fromEntries(edges) as JsonObject,
  };
}

/** What stands at a place that both changed. */
type Choose = (path: Path, values: Versions<Json | undefined>) => Json | undefined;

function mixed(path: Path, of: Versions<Parts>, choose: Choose, isOneThing: IsOneThing): Parts {
  const value = (at: Path, values: Versions<Json | undefined>): Json | undefined => {
    const { base, mine, theirs } = values;
    if (deepEqual(mine, theirs) || deepEqual(theirs, base)) return mine;
    if (deepEqual(mine, base)) return theirs;
    if (isObject(mine) && isObject(theirs)) {
      // The whole loop and its sections are mixed always; two things that are new to both are two things.
      const canMix = at.length <= 1 || (isObject(base) && !isOneThing(at, mine, theirs));
      const within = { base: isObject(base) ? base : {}, mine, theirs };
      if (canMix) return mixed(at, within, choose, isOneThing) as JsonObject;
    }
    if (Array.isArray(base) && isLike(base, mine) && isLike(base, theirs)) {
      return mine.map((item, index) => {
        const items = { base: base[index], mine: item, theirs: theirs[index] };
        return value([...at, index], items) ?? null;
      });
    }
    return choose(at, values);
  };
  const merged: Parts = {};
  for (const key of new Set([...Object.keys(of.mine), ...Object.keys(of.theirs)])) {
    const values = { base: of.base[key], mine: of.mine[key], theirs: of.theirs[key] };
    const item = value([...path, key], values);
    if (item !== undefined) merged[key] = item;
  }
  return merged;
}

function isLike(base: readonly Json[], other: Json | undefined): other is Json[] {
  return Array.isArray(other) && base.length === other.length;
}

/** The merged document. An edge that is new wants its ends: a node that the other removed is asked for. */
function withEnds(
  choose: Choose,
  merged: Parts,
  parts: Versions<Parts>,
  { base, mine, theirs }: Versions<LoopDocument>,
): LoopDocument {
  const { name, nodes: mergedNodes, edges: mergedEdges, ...rest } = merged;
  const nodes = { ...(mergedNodes as Record<string, NodeData>) };
  const all = Object.values((mergedEdges ?? {}) as Record<string, Edge>);
  const ends = new Set(all.flatMap(({ from, to }) => [portRef(from).node, portRef(to).node]));
  for (const id of ends) {
    if (id in nodes || !(id in mine.nodes || id in theirs.nodes)) continue;
    const at = (part: Parts) => (part.nodes as JsonObject | undefined)?.[id];
    const values = { base: at(parts.base), mine: at(parts.mine), theirs: at(parts.theirs) };
    const chosen = choose(["nodes", id], values);
    if (chosen !== undefined) nodes[id] = chosen as NodeData;
  }
  const isThere = (end: string) => portRef(end).node in nodes || !(portRef(end).node in base.nodes);
  const layout = Object.fromEntries(
    Object.keys(nodes).flatMap((id) => {
      const isMoved = !deepEqual(mine.layout[id], base.layout[id]);
      const place = (isMoved ? mine.layout[id] : theirs.layout[id]) ?? mine.layout[id];
      return place ? [[id, place] as const] : [];
    }),
  );
  const unread = deepEqual(mine.unread, base.unread) ? theirs.unread : mine.unread;
  return {
    name: typeof name === "string" ? name : mine.name,
    nodes,
    edges: all.filter(({ from, to }) => isThere(from) && isThere(to)),
    layout,
    rest: rest as JsonObject,
    ...(unread ? { unread } : {}),
  };
}

function differences(
  path: Path,
  before: Json | Parts | undefined,
  after: Json | Parts | undefined,
): Difference[] {
  if (deepEqual(before, after)) return [];
  const isSection = path.length <= 1;
  const [was, is] = isSection ? [before ?? {}, after ?? {}] : [before, after];
  if (isObject(was) && isObject(is)) {
    const [old, now]: [JsonObject, JsonObject] = [was, is];
    const keys = new Set([...Object.keys(old), ...Object.keys(now)]);
    return [...keys].flatMap((key) => differences([...path, key], old[key], now[key]));
  }
  return [{ path, before: before as Json | undefined, after: after as Json | undefined }];
}

/** In words; `where` is a node's name, "connections", or the part of the loop. */
export function differenceText(
  catalog: Catalog,
  { path, before, after }: Difference,
): { where: string; what: string } {
  const [head = "", id, ...rest] = path.map(String);
  if (head === "edges" && id !== undefined) {
    const ends = id.replace(/#\d+$/, "").replace("->", " → ");
    if (rest.length > 0) return { where: ends, what: `${rest.join(".")} ${change(before, after)}` };
    const word = before === undefined ? "connected" : "disconnected";
    return { where: "connections", what: `${ends} ${word}` };
  }
  if (head === "nodes" && id !== undefined) {
    if (rest.length > 0) return { where: id, what: `${rest.join(".")} ${change(before, after)}` };
    const node = after ?? before;
    const kind = isObject(node) ? String(node.kind) : "";
    const title = catalog.kinds[kind]?.title ?? kind;
    return { where: id, what: before === undefined ? `added, ${title}` : "removed" };
  }
  const inside = path.slice(1).join(".");
  return { where: head, what: `${inside} ${change(before, after)}`.trim() };
}

function change(before: Json | undefined, after: Json | undefined): string {
  if (before === undefined) return `set to ${valueText(after)}`;
  return after === undefined
    ? `no longer ${valueText(before)}`
    : `${valueText(before)} → ${valueText(after)}`;
}

const LONGEST = 60;

export function valueText(value: Json | undefined): string {
  if (value === undefined) return "nothing";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const line = text.replaceAll("\n", " ⏎ ");
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line;
}
