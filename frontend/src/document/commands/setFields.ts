import type { Json } from "@/api/types";
import type { Path } from "@/lib/paths";
import { defineCommand } from "../command";
import { setField } from "./setField";

interface SetFields {
  nodes: readonly string[];
  path: Path;
  /** `undefined` puts the field back to its default. */
  value: Json | undefined;
  /** How many keys of the path stay, empty or not, when a value below them is removed. */
  keep?: number;
}

/** One field of several nodes at once. */
export const setFields = defineCommand<SetFields>("Change fields", (draft, { nodes, ...field }) => {
  for (const node of nodes) setField.recipe(draft, { node, ...field });
});
