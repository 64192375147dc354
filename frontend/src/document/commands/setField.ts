import type { Json } from "@/api/types";
import { type Path, removePath, writePath } from "@/lib/paths";
import { defineCommand } from "../command";
import { keepTrueName } from "../trueName";

interface SetField {
  node: string;
  path: Path;
  /** `undefined` puts the field back to its default. */
  value: Json | undefined;
  /** How many keys of the path stay, empty or not, when a value below them is removed. */
  keep?: number;
}

export const setField = defineCommand<SetField>(
  "Change field",
  (draft, { node, path, value, keep }) => {
    const data = draft.nodes[node];
    if (!data) return;
    if (value === undefined) removePath(data, path, keep);
    else writePath(data, path, value);
    keepTrueName(draft);
  },
);
