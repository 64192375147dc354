import type { Group } from "@/document/types";
import { defineCommand } from "../document/command";

interface SetGroup {
  name: string;
  /** What it is from now on; null: it is dissolved, and its nodes stay. */
  group: Group | null;
  /** Its new name, unless another group has it. */
  as?: string;
}

/** A node is in one group of nodes at most: the last that took it. */
export const setGroup = defineCommand<SetGroup>("Group", (draft, { name, group, as = name }) => {
  const groups = { ...draft.groups };
  if (as !== name && as in groups) return;
  const own = new Set(group?.nodes);
  const kept = Object.entries(groups).flatMap(([other, old]): [string, Group][] => {
    if (other === name) return group ? [[as, group]] : [];
    if (!old.nodes?.some((id) => own.has(id))) return [[other, old]];
    const nodes = old.nodes.filter((id) => !own.has(id));
    return nodes.length > 0 ? [[other, { ...old, nodes }]] : [];
  });
  if (group && !(name in groups)) kept.push([as, group]);
  if (kept.length > 0) draft.groups = Object.fromEntries(kept);
  else delete draft.groups;
});
