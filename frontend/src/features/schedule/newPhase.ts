/** A phase to begin with: a free name, a few steps, and every connected teaching port. Pure. */
import type { Catalog, JsonObject } from "@/api/types";
import { phaseNames } from "@/document/phases";
import { teachingPorts } from "@/document/teaching";
import type { LoopDocument } from "@/document/types";

const STEPS = 100;

export function newPhase(catalog: Catalog, document: LoopDocument): JsonObject {
  const taken = new Set(phaseNames(document));
  let number = taken.size + 1;
  while (taken.has(`phase-${number}`)) number += 1;
  return {
    name: `phase-${number}`,
    steps: STEPS,
    learn: teachingPorts(catalog, document).map((port) => port.name),
  };
}

export function firstPhase(catalog: Catalog, document: LoopDocument): JsonObject {
  return {
    name: "train",
    steps: STEPS,
    learn: teachingPorts(catalog, document).map((port) => port.name),
  };
}
