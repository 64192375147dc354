import type { Json } from "@/api/types";
import { type Path, removePath, writePath } from "@/lib/paths";
import { defineCommand } from "../command";
import { edgeIndex } from "../edges";

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
    if (!edge) return;
    if (value === undefined) removePath(edge, path, keep);
    else writePath(edge, path, value);
  },
);
