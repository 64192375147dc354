import type { RunEvent } from "@/api/types";

export interface Mark {
  kind: "phase" | "checkpoint" | "edit" | "alert";
  step: number;
  label: string;
  /** A checkpoint that is kept no more: nothing can begin with it. */
  isGone?: boolean;
}

export interface Checkpoint {
  step: number;
  path: string;
  isBest: boolean;
}

export const MAX_MARKS = 1000;

const WRITTEN: Mark["kind"] = "checkpoint";

/** By the type of an event, what its mark says; null: there is none. */
const LABELS: Record<Mark["kind"], (event: RunEvent) => string | null> = {
  phase: (event) => (event.state === "started" ? String(event.phase ?? event.name ?? "") : null),
  checkpoint: (event) => (event.best === true ? null : "checkpoint"),
  edit: (event) => editLabel(event.changes),
  alert: (event) =>
    event.cleared === true || event.level === "info"
      ? null
      : String(event.message ?? event.code ?? "alert"),
};

export function markOf(event: RunEvent): Mark | null {
  if (typeof event.step !== "number" || !(event.type in LABELS)) return null;
  const kind = event.type as Mark["kind"];
  const label = LABELS[kind](event);
  return label === null ? null : { kind, step: event.step, label };
}

function editLabel(changes: unknown): string {
  if (typeof changes !== "object" || changes === null) return "changed";
  return Object.entries(changes)
    .map(([path, value]) => `${path.split(".").at(-1)} = ${JSON.stringify(value)}`)
    .join(", ");
}

/** The same, checkpoints told apart by whether they are kept; null: that is not known. */
export function marksNow(
  marks: readonly Mark[],
  kept: ReadonlySet<number> | null,
): readonly Mark[] {
  if (kept === null) return marks;
  return marks.map((mark) =>
    mark.kind === WRITTEN ? { ...mark, isGone: !kept.has(mark.step) } : mark,
  );
}

export function checkpointOf(event: RunEvent): Checkpoint | null {
  if (event.type !== WRITTEN || typeof event.step !== "number") return null;
  return { step: event.step, path: String(event.path ?? ""), isBest: event.best === true };
}
