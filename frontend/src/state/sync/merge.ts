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

export function mergeDocuments(
  base: LoopDocument,
  mine: LoopDocument,
  theirs: LoopDocument,
  isOneThing: IsOneThing = () => false,
): Merge {
  const parts = { base: partsOf(base), mine: partsOf(mine), theirs: partsOf(theirs) };
  const collisions: Collision[] = [];
  const run = (choices: Readonly<Record<string, Side>>, note: (one: Collision) => void) => {
    const merge = new Merger(choices, note, isOneThing);
    const merged = merge.objects([], parts.base, parts.mine, parts.theirs);
    return withEnds(merge, merged, parts, base, mine, theirs);
  };
  run({}, (one) => collisions.push(one));
  return {
    mine: differences([], parts.base, parts.mine),
    theirs: differences([], parts.base, parts.theirs),
    collisions,
    decide: (choices) => run(choices, () => {}),
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

class Merger {
  constructor(
    private readonly choices: Readonly<Record<string, Side>>,
    private readonly note: (collision: Collision) => void,
    private readonly isOneThing: IsOneThing,
  ) {}

  objects(path: Path, base: Parts, mine: Parts, theirs: Parts): Parts {
    const merged: Parts = {};
    for (const key of new Set([...Object.keys(mine), ...Object.keys(theirs)])) {
      const value = this.value([...path, key], base[key], mine[key], theirs[key]);
      if (value !== undefined) merged[key] = value;
    }
    return merged;
  }

  value(
    path: Path,
    base: Json | undefined,
    mine: Json | undefined,
    theirs: Json | undefined,
  ): Json | undefined {
    if (deepEqual(mine, theirs) || deepEqual(theirs, base)) return mine;
    if (deepEqual(mine, base)) return theirs;
    if (isObject(mine) && isObject(theirs) && this.canMix(path, base, mine, theirs)) {
      return this.objects(path, isObject(base) ? base : {}, mine, theirs) as JsonObject;
    }
    if (Array.isArray(base) && isLike(base, mine) && isLike(base, theirs)) {
      return mine.map((one, at) => this.value([...path, at], base[at], one, theirs[at]) ?? null);
    }
    return this.choose({ key: joinPath(path), path, base, mine, theirs });
  }

  choose(collision: Collision): Json | undefined {
    this.note(collision);
    return this.choices[collision.key] === "theirs" ? collision.theirs : collision.mine;
  }

  /** The whole loop and its sections are mixed always; two things that are new to both are two things. */
  private canMix(path: Path, base: Json | undefined, mine: Json, theirs: Json): boolean {
    if (path.length <= 1) return true;
    return isObject(base) && !this.isOneThing(path, mine, theirs);
  }
}

function isLike(base: readonly Json[], other: Json | undefined): other is Json[] {
  return Array.isArray(other) && base.length === other.length;
}

/** The merged document. An edge that is new wants its ends: a node that the other removed is asked for. */
function withEnds(
  merge: Merger,
  merged: Parts,
  parts: { base: Parts; mine: Parts; theirs: Parts },
  base: LoopDocument,
  mine: LoopDocument,
  theirs: LoopDocument,
): LoopDocument {
  const { name, nodes: mergedNodes, edges: mergedEdges, ...rest } = merged;
  const nodes = { ...(mergedNodes as Record<string, NodeData>) };
  const all = Object.values((mergedEdges ?? {}) as Record<string, Edge>);
  const ends = new Set(all.flatMap(({ from, to }) => [portRef(from).node, portRef(to).node]));
  for (const id of ends) {
    if (id in nodes || !(id in mine.nodes || id in theirs.nodes)) continue;
    const at = (part: Parts) => (part.nodes as JsonObject | undefined)?.[id];
    const path = ["nodes", id];
    const [was, own, other] = [at(parts.base), at(parts.mine), at(parts.theirs)];
    const chosen = merge.choose({ key: joinPath(path), path, base: was, mine: own, theirs: other });
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

interface DifferenceText {
  /** A node's name, "connections", or the part of the loop. */
  where: string;
  what: string;
}

export function differenceText(
  catalog: Catalog,
  { path, before, after }: Difference,
): DifferenceText {
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
