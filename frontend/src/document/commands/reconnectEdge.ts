import { defineCommand } from "../command";
import { edgeIndex } from "../edges";

interface Reconnect {
  key: string;
  from: string;
  to: string;
}

export const reconnectEdge = defineCommand<Reconnect>(
  "Move connection",
  (draft, { key, from, to }) => {
    const edge = draft.edges[edgeIndex(draft, key)];
    if (!edge) return;
    edge.from = from;
    edge.to = to;
  },
);
