import type { Json } from "@/api/types";
import { type Path, removePath, writePath } from "@/lib/paths";
import { defineCommand } from "../command";
import { edgeIndex } from "../edges";

interface SetEdgeOption {
  key: string;
  path: Path;
  value: Json | undefined;
}

export const setEdgeOption = defineCommand<SetEdgeOption>(
  "Change connection",
  (draft, { key, path, value }) => {
    const edge = draft.edges[edgeIndex(draft, key)];
    if (!edge) return;
    if (value === undefined) removePath(edge, path);
    else writePath(edge, path, value);
  },
);
