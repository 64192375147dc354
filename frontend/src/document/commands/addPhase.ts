import type { JsonObject } from "@/api/types";
import { defineCommand } from "../command";
import { ensurePhases, type PhasePath, phaseList } from "../phases";

interface AddPhase {
  /** Place of the new phase. */
  at: PhasePath;
  phase: JsonObject;
  /** Stands for what runs now, where the loop has no phases yet. */
  first: JsonObject;
}

export const addPhase = defineCommand<AddPhase>("Add phase", (draft, { at, phase, first }) => {
  ensurePhases(draft, first);
  const list = phaseList(draft, at.slice(0, -1));
  list?.splice(at.at(-1) ?? list.length, 0, phase);
});
