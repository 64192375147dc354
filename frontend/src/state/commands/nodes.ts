import { current } from "immer";
import type { Catalog } from "@/api/types";
import type { Splice } from "@/document/canConnect";
import { edgeIndex, edgeKeys, portRef, portText } from "@/document/edges";
import type { Fragment } from "@/document/fragment";
import { mapPhases } from "@/document/phases";
import {
  type Renaming,
  renameEnd,
  renameInNodes,
  renameInSection,
  renameKey,
} from "@/document/references";
import type { Edge, LoopDocument, NodeData, Point } from "@/document/types";
import { defineCommand } from "../document/command";
import { locksOf, writeLocks } from "../document/locks";

interface AddNode {
  id: string;
  data: NodeData;
  position: Point;
  edges?: Edge[];
}

export const addNode = defineCommand<AddNode>(
  "Add node",
  (draft, { id, data, position, edges }) => {
    if (id in draft.nodes) return;
    draft.nodes[id] = data;
    draft.layout[id] = position;
    draft.edges.push(...(edges ?? []));
  },
);

interface RenameNode {
  catalog: Catalog;
  from: string;
  to: string;
}

/** Edges, place and every mention of the node follow its name. */
export const renameNode = defineCommand<RenameNode>(
  "Rename node",
  (draft, { catalog, from, to }) => {
    if (from === to || !(from in draft.nodes) || to in draft.nodes) return;
    const document = current(draft) as LoopDocument;
    const renaming: Renaming = { catalog, document, from, to };

    draft.nodes = renameInNodes(document.nodes, renaming);
    draft.layout = renameKey(document.layout, renaming);
    const { [from]: identity, ...others } = document.identities ?? {};
    if (identity !== undefined) draft.identities = { ...others, [to]: identity };
    for (const group of Object.values(draft.groups ?? {})) {
      if (group.nodes) group.nodes = group.nodes.map((id) => (id === from ? to : id));
    }
    const ofNode = `nodes.${from}.`;
    const renamed = (path: string) =>
      path.startsWith(ofNode) ? `nodes.${to}.${path.slice(ofNode.length)}` : path;
    const locks = locksOf(document);
    if (locks.some((path) => path.startsWith(ofNode))) {
      writeLocks(draft, locks.map(renamed));
    }

    for (const edge of draft.edges) {
      for (const end of ["from", "to"] as const) edge[end] = renameEnd(edge[end], renaming);
    }
    for (const [section, value] of Object.entries(document.rest)) {
      if (value !== undefined) draft.rest[section] = renameInSection(section, value, renaming);
    }
  },
);

interface RemoveItems {
  nodes: readonly string[];
  edges: readonly string[];
}

/** Nodes go with their edges, their place and what phases taught them; other mentions are left for the check to find. */
export const removeItems = defineCommand<RemoveItems>("Delete", (draft, { nodes, edges }) => {
  const gone = new Set(nodes);
  const cut = new Set(edges);
  const keys = edgeKeys(draft.edges);
  const kept = draft.edges.filter(
    (edge, index) =>
      !cut.has(keys[index] ?? "") &&
      !gone.has(portRef(edge.from).node) &&
      !gone.has(portRef(edge.to).node),
  );
  if (kept.length !== draft.edges.length) draft.edges = kept;
  for (const id of nodes) {
    delete draft.nodes[id];
    delete draft.layout[id];
  }
  if (gone.size === 0) return;
  forgetInGroups(draft, gone);
  mapPhases(draft, (phase) => {
    const { learn } = phase;
    if (!Array.isArray(learn)) return;
    const left = learn.filter((port) => typeof port !== "string" || !gone.has(portRef(port).node));
    if (left.length !== learn.length) phase.learn = left;
  });
});

/** A group of nobody is none. */
function forgetInGroups(draft: LoopDocument, gone: ReadonlySet<string>): void {
  for (const [name, group] of Object.entries(draft.groups ?? {})) {
    if (!group.nodes?.some((id) => gone.has(id))) continue;
    group.nodes = group.nodes.filter((id) => !gone.has(id));
    if (group.nodes.length === 0) delete draft.groups?.[name];
  }
  if (draft.groups && Object.keys(draft.groups).length === 0) delete draft.groups;
}

export const moveNodes = defineCommand<{ positions: Record<string, Point> }>(
  "Move",
  (draft, { positions }) => {
    for (const [id, [x, y]] of Object.entries(positions)) {
      if (!(id in draft.nodes)) continue;
      const old = draft.layout[id];
      if (old && old[0] === x && old[1] === y) continue;
      draft.layout[id] = [x, y];
    }
  },
);

interface PasteItems {
  fragment: Fragment;
  /** The name of the group that they become; none by default. */
  group?: string;
}

export const pasteItems = defineCommand<PasteItems>("Paste", (draft, { fragment, group }) => {
  for (const [id, node] of Object.entries(fragment.nodes)) {
    if (id in draft.nodes) continue;
    draft.nodes[id] = node;
    const point = fragment.layout[id];
    if (point) draft.layout[id] = point;
  }
  draft.edges.push(...fragment.edges);
  if (group !== undefined) {
    draft.groups ??= {};
    draft.groups[group] = { nodes: Object.keys(fragment.nodes) };
  }
});

interface InsertOnEdge {
  key: string;
  node: string;
  ports: Splice;
  positions: Record<string, Point>;
  data?: NodeData;
}

/** The edge goes on from the node, with its options; another one leads to it. */
export const insertOnEdge = defineCommand<InsertOnEdge>(
  "Insert",
  (draft, { key, node, ports, positions, data }) => {
    const at = edgeIndex(draft, key);
    const edge = draft.edges[at];
    if (!edge || (data ? node in draft.nodes : !(node in draft.nodes))) return;
    if (data) draft.nodes[node] = data;
    moveNodes.recipe(draft, { positions });
    const { from } = edge;
    edge.from = portText({ node, port: ports.output });
    draft.edges.splice(at, 0, { from, to: portText({ node, port: ports.input }) });
  },
);
