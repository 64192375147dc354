import type { Json } from "@/api/types";
import { type Path, removePath, writePath } from "@/lib/paths";
import { defineCommand } from "../command";
import { findPlace } from "../place";
import { keepTrueName } from "../trueName";

interface SetValue {
  path: Path;
  value: Json | undefined;
  /** How many keys of the path stay, empty or not, when a value below them is removed. */
  keep?: number;
}

/** Any value of the loop by its path; `undefined` removes it. */
export const setValue = defineCommand<SetValue>(
  "Change setting",
  (draft, { path, value, keep }) => {
    const place = findPlace(draft, path);
    if (value === undefined) removePath(place.root, place.path, keep);
    else writePath(place.root, place.path, value);
    if (path[0] === "hardware" || path[0] === "nodes") keepTrueName(draft);
  },
);
