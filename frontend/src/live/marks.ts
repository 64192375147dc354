/** Moments of a run that charts show as lines: what happened at which step. */
import type { RunEvent } from "@/api/types";

export interface Mark {
  kind: "phase" | "checkpoint" | "edit" | "alert";
  step: number;
  label: string;
}

export interface Checkpoint {
  step: number;
  path: string;
  isBest: boolean;
}

export const MAX_MARKS = 1000;

export function markOf(event: RunEvent): Mark | null {
  const step = event.step;
  if (typeof step !== "number") return null;
  switch (event.type) {
    case "phase":
      return event.state === "started"
        ? { kind: "phase", step, label: String(event.phase ?? event.name ?? "") }
        : null;
    case "checkpoint":
      return event.best === true ? null : { kind: "checkpoint", step, label: "checkpoint" };
    case "edit":
      return { kind: "edit", step, label: editLabel(event.changes) };
    case "alert":
      return event.cleared === true || event.level === "info"
        ? null
        : { kind: "alert", step, label: String(event.message ?? event.code ?? "alert") };
    default:
      return null;
  }
}

function editLabel(changes: unknown): string {
  if (typeof changes !== "object" || changes === null) return "changed";
  return Object.entries(changes)
    .map(([path, value]) => `${path.split(".").at(-1)} = ${JSON.stringify(value)}`)
    .join(", ");
}

export function checkpointOf(event: RunEvent): Checkpoint | null {
  if (event.type !== "checkpoint" || typeof event.step !== "number") return null;
  return { step: event.step, path: String(event.path ?? ""), isBest: event.best === true };
}
