import { defineCommand } from "../command";
import { edgeIndex } from "../edges";

/** Weights of several connections at once, by their keys. */
export const setWeights = defineCommand<{ weights: Readonly<Record<string, number>> }>(
  "Set reward weights",
  (draft, { weights }) => {
    for (const [key, weight] of Object.entries(weights)) {
      const edge = draft.edges[edgeIndex(draft, key)];
      if (edge && (edge.weight ?? 1) !== weight) edge.weight = weight;
    }
  },
);
