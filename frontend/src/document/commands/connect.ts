import { defineCommand } from "../command";
import type { Edge } from "../types";

export const connect = defineCommand<{ edge: Edge }>("Connect", (draft, { edge }) => {
  if (draft.edges.some((other) => other.from === edge.from && other.to === edge.to)) return;
  draft.edges.push(edge);
});
