import type { Catalog, JsonObject } from "@/api/types";
import { teachingPorts } from "@/document/canConnect";
import { type PhasePath, phaseNames, schedule } from "@/document/phases";
import type { LoopDocument } from "@/document/types";
import { addPhase, takeTurns } from "@/state/commands/phases";
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

/** Nodes that are taught, each with its teaching ports. */
export function taughtNodes(catalog: Catalog, document: LoopDocument): Map<string, string[]> {
  const taught = new Map<string, string[]>();
  for (const { node, name } of teachingPorts(catalog, document)) {
    taught.set(node, [...(taught.get(node) ?? []), name]);
  }
  return taught;
}

/** A phase of one step for each learner, again and again for as long as the whole run was. */
export function insertTurns({ catalog, store }: OpenLoop): void {
  const { document } = store.getState();
  const phases = [...taughtNodes(catalog, document)].map(
    ([node, learn]): JsonObject => ({ name: node.replaceAll("_", "-"), steps: 1, learn }),
  );
  const { steps } = schedule(document);
  const total = typeof steps === "number" ? steps : STEPS;
  const repeat = Math.max(1, Math.round(total / phases.length));
  store.dispatch(takeTurns, { group: { repeat, phases } });
}
