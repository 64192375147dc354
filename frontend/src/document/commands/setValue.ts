import type { Json } from "@/api/types";
import { type Path, removePath, writePath } from "@/lib/paths";
import { defineCommand } from "../command";
import { findPlace } from "../place";

interface SetValue {
  path: Path;
  value: Json | undefined;
}

/** Any value of the loop by its path; `undefined` removes it. */
export const setValue = defineCommand<SetValue>("Change setting", (draft, { path, value }) => {
  const place = findPlace(draft, path);
  if (value === undefined) removePath(place.root, place.path);
  else writePath(place.root, place.path, value);
});
