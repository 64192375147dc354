import { defineCommand } from "../command";
import type { Edge, NodeData, Point } from "../types";

interface AddNode {
  id: string;
  data: NodeData;
  position: Point;
  /** Edges that come with it, where it was dropped from a port. */
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
