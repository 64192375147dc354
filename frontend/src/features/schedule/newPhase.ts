import { teachingPorts } from "@/document/canConnect";
import { type PhasePath, phaseNames } from "@/document/phases";
import { addPhase } from "@/state/commands/phases";
import type { OpenLoop } from "@/state/document/context";

const STEPS = 100;

/** A phase to begin with: a free name, a few steps, and every connected teaching port. */
export function insertPhase({ catalog, store }: OpenLoop, at: PhasePath): void {
  const { document } = store.getState();
  const taken = new Set(phaseNames(document));
  let number = taken.size + 1;
  while (taken.has(`phase-${number}`)) number += 1;
  const learn = teachingPorts(catalog, document).map((port) => port.name);
  store.dispatch(addPhase, {
    at,
    phase: { name: `phase-${number}`, steps: STEPS, learn: [...learn] },
    first: { name: "train", steps: STEPS, learn },
  });
}
