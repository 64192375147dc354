import type { Json } from "@/api/types";
import { edgeIndex } from "@/document/edges";
import type { Edge } from "@/document/types";
import { type Path, setPath } from "@/lib/paths";
import { defineCommand } from "../document/command";

export const connect = defineCommand<{ edge: Edge }>("Connect", (draft, { edge }) => {
  if (draft.edges.some((other) => other.from === edge.from && other.to === edge.to)) return;
  draft.edges.push(edge);
});

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

interface SetEdgeOption {
  key: string;
  path: Path;
  value: Json | undefined;
  /** How many keys of the path stay, empty or not, when a value below them is removed. */
  keep?: number;
}

export const setEdgeOption = defineCommand<SetEdgeOption>(
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
