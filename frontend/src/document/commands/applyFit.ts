import type { Catalog, Change } from "@/api/types";
import { defineCommand } from "../command";
import { locksOf, writeLocks } from "../locks";
import { keepTrueName } from "../trueName";
import type { LoopDocument } from "../types";
import { applyChanges } from "./applyChanges";

interface ApplyFit {
  catalog: Catalog;
  edits: readonly Change[];
  /** Locks that go with it. */
  unlocks?: readonly string[];
}

/** Settings that were found for a budget or a placement, all at once. */
export const applyFit = defineCommand<ApplyFit>(
  "Fit into memory",
  (draft, { catalog, edits, unlocks = [] }) => {
    const changes = edits.filter((edit) => !edit.path.startsWith("layout."));
    applyChanges.recipe(draft, { catalog, changes });
    keepTrueName(draft as LoopDocument);
    if (unlocks.length === 0) return;
    const kept = locksOf(draft as LoopDocument).filter((path) => !unlocks.includes(path));
    writeLocks(draft, kept);
  },
);
