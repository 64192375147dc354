import { defineCommand } from "../command";
import type { Edge, NodeData, Point } from "../types";

interface AddNode {
  id: string;
  data: NodeData;
  position: Point;
  /** Edges that come with it, where it was dropped from a port. */
  edges?: Edge[];
  /** Where nodes without a place of their own are drawn; with the new one these become their places. */
  shown?: Record<string, Point>;
}

export const addNode = defineCommand<AddNode>(
  "Add node",
  (draft, { id, data, position, edges, shown }) => {
    if (id in draft.nodes) return;
    draft.layout = { ...shown, ...draft.layout };
    draft.nodes[id] = data;
    draft.layout[id] = position;
    draft.edges.push(...(edges ?? []));
  },
);
