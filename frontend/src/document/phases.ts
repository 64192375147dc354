/**
 * The schedule's phases: a list whose items are phases or groups of phases (`repeat`, `phases`).
 * A phase path lists the positions from the outside in: [1, 0] is the first phase of the second group.
 */
import type { JsonObject } from "@/api/types";
import { isObject } from "@/lib/paths";
import type { LoopDocument } from "./types";

export type PhasePath = readonly number[];

export function isGroup(phase: JsonObject): boolean {
  return Array.isArray(phase.phases);
}

/** The same for every loop without one, as what reads it compares. */
const NO_SCHEDULE: JsonObject = {};

export function schedule(document: LoopDocument): JsonObject {
  return isObject(document.rest.schedule) ? document.rest.schedule : NO_SCHEDULE;
}

export function phaseList(document: LoopDocument, parent: PhasePath): JsonObject[] | null {
  let list = schedule(document).phases;
  for (const index of parent) {
    const phase = Array.isArray(list) ? list[index] : undefined;
    list = isObject(phase) ? phase.phases : undefined;
  }
  return Array.isArray(list) ? (list as JsonObject[]) : null;
}

export function phaseAt(document: LoopDocument, at: PhasePath): JsonObject | null {
  const phase = phaseList(document, at.slice(0, -1))?.[at.at(-1) ?? 0];
  return isObject(phase) ? phase : null;
}

/** "schedule.phases.1.phases.0" as a path of the spec. */
export function phaseSpecPath(at: PhasePath): (string | number)[] {
  return ["schedule", ...at.flatMap((index) => ["phases", index])];
}

/** The phase that a field path of a diagnostic lies in, and the rest of the path. */
export function readPhasePath(
  path: readonly (string | number)[],
): { at: PhasePath; rest: (string | number)[] } | null {
  if (path[0] !== "schedule") return null;
  const at: number[] = [];
  let index = 1;
  while (path[index] === "phases" && typeof path[index + 1] === "number") {
    at.push(path[index + 1] as number);
    index += 2;
  }
  return at.length === 0 ? null : { at, rest: path.slice(index) };
}

export function mapPhases(
  document: LoopDocument,
  change: (phase: JsonObject, at: PhasePath) => void,
): void {
  const visit = (list: JsonObject[] | null, parent: PhasePath) => {
    for (const [index, phase] of (list ?? []).entries()) {
      if (!isObject(phase)) continue;
      const at = [...parent, index];
      change(phase, at);
      if (Array.isArray(phase.phases)) visit(phase.phases as JsonObject[], at);
    }
  };
  visit(phaseList(document, []), []);
}

export function ensurePhases(draft: LoopDocument, first: JsonObject): void {
  if (!isObject(draft.rest.schedule)) draft.rest.schedule = {};
  const own = draft.rest.schedule;
  if (Array.isArray(own.phases)) return;
  const { steps, epochs, ...rest } = own;
  const taken: JsonObject = { ...first };
  if (steps !== undefined) {
    taken.steps = steps;
    delete taken.epochs;
  }
  if (epochs !== undefined) {
    taken.epochs = epochs;
    delete taken.steps;
  }
  draft.rest.schedule = { ...rest, phases: [taken] };
}

export function phaseNames(document: LoopDocument): string[] {
  const names: string[] = [];
  mapPhases(document, (phase) => {
    if (typeof phase.name === "string") names.push(phase.name);
  });
  return names;
}
