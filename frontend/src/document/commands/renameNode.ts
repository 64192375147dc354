import type { Json, JsonObject } from "@/api/types";
import { defineCommand } from "../command";
import { portRef, portText } from "../edges";
import { renameReferences } from "../references";
import type { NodeData, Point } from "../types";

interface RenameNode {
  from: string;
  to: string;
}

/** Edges, place and every mention of the node follow its name. */
export const renameNode = defineCommand<RenameNode>("Rename node", (draft, { from, to }) => {
  if (from === to || !(from in draft.nodes) || to in draft.nodes) return;
  const follow = <V extends Json | undefined>(value: V): V =>
    (value === undefined ? undefined : renameReferences(value as Json, from, to)) as V;

  const nodes: Record<string, NodeData> = {};
  for (const [id, node] of Object.entries(draft.nodes)) {
    nodes[id === from ? to : id] = follow(node as Json) as NodeData;
  }
  draft.nodes = nodes;

  const layout: Record<string, Point> = {};
  for (const [id, point] of Object.entries(draft.layout)) {
    layout[id === from ? to : id] = point as Point;
  }
  draft.layout = layout;

  for (const edge of draft.edges) {
    for (const end of ["from", "to"] as const) {
      const ref = portRef(edge[end]);
      if (ref.node === from) edge[end] = portText({ node: to, port: ref.port });
    }
  }
  draft.rest = follow(draft.rest as Json) as JsonObject;
});
