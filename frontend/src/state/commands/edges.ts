import { edgeIndex } from "@/document/edges";
import type { Edge } from "@/document/types";
import { setPath } from "@/lib/paths";
import { defineCommand } from "../document/command";
import type { SetValue } from "./fields";

export const connect = defineCommand<{ edge: Edge }>("Connect", (draft, { edge }) => {
  if (draft.edges.some((other) => other.from === edge.from && other.to === edge.to)) return;
  draft.edges.push(edge);
});

export const reconnectEdge = defineCommand<{ key: string; from: string; to: string }>(
  "Move connection",
  (draft, { key, from, to }) => {
    const edge = draft.edges[edgeIndex(draft, key)];
    if (!edge) return;
    edge.from = from;
    edge.to = to;
  },
);

export const setEdgeOption = defineCommand<SetValue & { key: string }>(
  "Change connection",
  (draft, { key, path, value, keep }) => {
    const edge = draft.edges[edgeIndex(draft, key)];
    if (edge) setPath(edge, path, value, keep);
  },
);

export const setWeights = defineCommand<{ weights: Readonly<Record<string, number>> }>(
  "Set reward weights",
  (draft, { weights }) => {
    for (const [key, weight] of Object.entries(weights)) {
      const edge = draft.edges[edgeIndex(draft, key)];
      if (edge && (edge.weight ?? 1) !== weight) edge.weight = weight;
    }
  },
);
