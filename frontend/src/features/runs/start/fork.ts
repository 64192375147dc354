import type { Json, JsonObject } from "@/api/types";
import { isObject, joinPath, type Path, readPath } from "@/lib/paths";

/** The newest checkpoint at or before a step; null where there is none. */
export function checkpointBefore(steps: readonly number[], at: number): number | null {
  const before = steps.filter((step) => step <= at);
  return before.length > 0 ? Math.max(...before) : null;
}

/** Which checkpoint is taken for a step, and why it is not that step itself; null: nothing to say. */
export function whyCheckpoint(steps: readonly number[], at: number): string | null {
  if (steps.length === 0 || steps.includes(at)) return null;
  const before = checkpointBefore(steps, at);
  return before === null
    ? `No checkpoint of step ${at} or before it is kept. The earliest is of step ${Math.min(...steps)}: the new run would start after the step that is shown.`
    : `Step ${before} is the nearest checkpoint at or before step ${at}: the new run starts there.`;
}

/** Checkpoints as they are offered for a step: those at or before it first, the nearest first. */
export function offered(steps: readonly number[], at: number | undefined): number[] {
  const newest = steps.toSorted((one, other) => other - one);
  if (at === undefined) return newest;
  const later = newest.filter((step) => step > at).toReversed();
  return [...newest.filter((step) => step <= at), ...later];
}

export interface Changeable {
  path: string;
  label: string;
  value: Json | undefined;
}

export function changeables(spec: JsonObject): Changeable[] {
  const fields: Changeable[] = [
    { path: "run.seed", label: "Seed", value: readPath(spec, ["run", "seed"]) ?? 0 },
  ];
  const add = (path: Path, label: string) => {
    const value = readPath(spec, path);
    if (typeof value === "number") fields.push({ path: joinPath(path), label, value });
  };
  add(["schedule", "steps"], "Steps");
  const phases = readPath(spec, ["schedule", "phases"]);
  if (Array.isArray(phases)) {
    for (const [index, phase] of phases.entries()) {
      const name = isObject(phase) && typeof phase.name === "string" ? phase.name : `${index + 1}`;
      add(["schedule", "phases", index, "steps"], `Steps of ${name}`);
    }
  }
  for (const name of Object.keys(isObject(spec.nodes) ? spec.nodes : {})) {
    add(["nodes", name, "training", "optimizer", "lr"], `Learning rate of ${name}`);
  }
  return fields;
}

export function readTyped(text: string): Json {
  const trimmed = text.trim();
  try {
    return JSON.parse(trimmed) as Json;
  } catch {
    const number = Number(trimmed);
    return trimmed !== "" && Number.isFinite(number) ? number : trimmed;
  }
}
