import { current } from "immer";
import type { Catalog } from "@/api/types";
import { defineCommand } from "../command";
import { portRef, portText } from "../edges";
import { locksOf, writeLocks } from "../locks";
import { type Renaming, renameInNode, renameInSection } from "../references";
import type { LoopDocument, NodeData, Point } from "../types";

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

    const nodes: Record<string, NodeData> = {};
    for (const [id, node] of Object.entries(document.nodes)) {
      nodes[id === from ? to : id] = renameInNode(node, renaming) as NodeData;
    }
    draft.nodes = nodes;

    const layout: Record<string, Point> = {};
    for (const [id, point] of Object.entries(draft.layout)) {
      layout[id === from ? to : id] = point as Point;
    }
    draft.layout = layout;
    const { [from]: identity, ...others } = document.identities ?? {};
    if (identity !== undefined) draft.identities = { ...others, [to]: identity };
    const ofNode = `nodes.${from}.`;
    const locks = locksOf(document);
    if (locks.some((path) => path.startsWith(ofNode))) {
      const renamed = (path: string) => `nodes.${to}.${path.slice(ofNode.length)}`;
      writeLocks(
        draft,
        locks.map((path) => (path.startsWith(ofNode) ? renamed(path) : path)),
      );
    }

    for (const edge of draft.edges) {
      for (const end of ["from", "to"] as const) {
        const ref = portRef(edge[end]);
        if (ref.node === from) edge[end] = portText({ node: to, port: ref.port });
      }
    }
    for (const [section, value] of Object.entries(document.rest)) {
      if (value !== undefined) draft.rest[section] = renameInSection(section, value, renaming);
    }
  },
);
