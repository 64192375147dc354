import { defineCommand } from "../command";
import { edgeIndex, portText } from "../edges";
import type { Splice } from "../splice";
import type { NodeData, Point } from "../types";
import { moveNodes } from "./moveNodes";

interface InsertOnEdge {
  key: string;
  node: string;
  ports: Splice;
  positions: Record<string, Point>;
  /** What the node begins as, where it is new. */
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
