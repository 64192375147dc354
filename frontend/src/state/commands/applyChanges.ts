import { current } from "immer";
import type { Catalog, Change, Json } from "@/api/types";
import { readEdge } from "@/document/edges";
import { findPlace, readDocumentPath } from "@/document/place";
import { keepTrueName } from "@/document/trueName";
import type { LoopDocument } from "@/document/types";
import { placeBeside } from "@/graph/freePlace";
import { isObject, type Path, readPath, removePath, writePath } from "@/lib/paths";
import { defineCommand } from "../document/command";
import { locksOf, writeLocks } from "../document/locks";
import { removeItems, renameNode } from "./nodes";

export const applyChanges = defineCommand<{ catalog: Catalog; changes: readonly Change[] }>(
  "Apply fix",
  (draft, { catalog, changes }) => {
    const before = new Set(Object.keys(draft.nodes));
    for (const change of changes) applyChange(catalog, draft as LoopDocument, change);
    for (const id of Object.keys(draft.nodes)) {
      if (before.has(id) || draft.layout[id]) continue;
      const place = placeBeside(catalog, current(draft) as LoopDocument, id);
      if (place) draft.layout[id] = place;
    }
  },
);

function applyChange(catalog: Catalog, draft: LoopDocument, { op, path, value }: Change): void {
  const keys = readDocumentPath(draft, path);
  const place = findPlace(draft, keys);
  if (isInMissingEdge(draft, keys, place.path)) return;
  const isNode = keys.length === 2 && keys[0] === "nodes";
  const isEdge = keys.length === 2 && keys[0] === "edges";
  switch (op) {
    case "set":
      if (isEdge) setEdge(draft, place.path, value);
      else writePath(place.root, place.path, value ?? null);
      break;
    case "remove":
      if (isNode) removeItems.recipe(draft, { nodes: [String(keys[1])], edges: [] });
      else if (isEdge) removeEdge(draft, path, undefined);
      else removePath(place.root, place.path);
      break;
    case "insert":
      if (isEdge) insertEdge(draft, place.path, value);
      else insertItem(place.root, place.path, value ?? null);
      break;
    case "rename":
      if (isNode) renameNode.recipe(draft, { catalog, from: String(keys[1]), to: String(value) });
      else renameKey(place.root, place.path, String(value));
      break;
    case "add_edge": {
      const edge = readEdge(value ?? path);
      if (edge) draft.edges.push(edge);
      break;
    }
    case "remove_edge":
      removeEdge(draft, path, value);
      break;
  }
}

function isInMissingEdge(draft: LoopDocument, keys: Path, [, index]: Path): boolean {
  return keys[0] === "edges" && keys.length > 2 && !(Number(index) in draft.edges);
}

function setEdge(draft: LoopDocument, [, index]: Path, value: Json | undefined): void {
  const edge = readEdge(value);
  const at = Number(index);
  if (edge && at >= 0 && at <= draft.edges.length) draft.edges[at] = edge;
}

function insertEdge(draft: LoopDocument, [, index]: Path, value: Json | undefined): void {
  const edge = readEdge(value);
  if (edge) draft.edges.splice(Number(index), 0, edge);
}

function insertItem(root: object, path: Path, value: Json): void {
  const list = readPath(root, path.slice(0, -1));
  if (Array.isArray(list)) list.splice(Number(path.at(-1)), 0, value);
  else writePath(root, path.slice(0, -1), [value]);
}

function renameKey(root: object, path: Path, name: string): void {
  const parent = path.length === 1 ? root : readPath(root, path.slice(0, -1));
  const old = String(path.at(-1));
  if (!isObject(parent) || !(old in parent)) return;
  const entries = Object.entries(parent);
  for (const key of Object.keys(parent)) delete parent[key];
  for (const [key, item] of entries) parent[key === old ? name : key] = item;
}

function removeEdge(draft: LoopDocument, path: string, value: Json | undefined): void {
  const wanted = readEdge(value ?? path);
  const byEnds = draft.edges.findIndex(
    (edge) => wanted !== null && edge.from === wanted.from && edge.to === wanted.to,
  );
  const [, index] = findPlace(draft, readDocumentPath(draft, path)).path;
  const found = byEnds >= 0 ? byEnds : Number(index);
  if (found in draft.edges) draft.edges.splice(found, 1);
}

interface ApplyFit {
  catalog: Catalog;
  edits: readonly Change[];
  unlocks?: readonly string[];
}

/** Settings that were found for a budget or a placement, all at once. */
export const applyFit = defineCommand<ApplyFit>(
  "Fit into memory",
  (draft, { catalog, edits, unlocks = [] }) => {
    const changes = edits.filter((edit) => !edit.path.startsWith("layout."));
    applyChanges.recipe(draft, { catalog, changes });
    keepTrueName(draft as LoopDocument);
    if (unlocks.length === 0) return;
    const kept = locksOf(draft as LoopDocument).filter((path) => !unlocks.includes(path));
    writeLocks(draft, kept);
  },
);
