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

const WRITTEN: ReadonlySet<string> = new Set(["checkpoint"]);

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

function isMarked(type: string): type is Mark["kind"] {
  return type in LABELS;
}

export function markOf({ type, ...event }: RunEvent): Mark | null {
  if (typeof event.step !== "number" || !isMarked(type)) return null;
  const label = LABELS[type]({ type, ...event });
  return label === null ? null : { kind: type, step: event.step, label };
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
    WRITTEN.has(mark.kind) ? { ...mark, isGone: !kept.has(mark.step) } : mark,
  );
}

export function checkpointOf(event: RunEvent): Checkpoint | null {
  if (!WRITTEN.has(event.type) || typeof event.step !== "number") return null;
  return { step: event.step, path: String(event.path ?? ""), isBest: event.best === true };
}
