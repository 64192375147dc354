/** What the compiler chose where the loop leaves a field open, and why; read from the answer of the last check. */
import { useMemo } from "react";
import type { Json, PlannedDecision } from "@/api/types";
import { useSync } from "./context";

export interface Decided {
  path: string;
  value: Json | null;
  /** Ready to be shown. */
  text: string;
  why: string;
}

const NONE: readonly PlannedDecision[] = [];

/** What was chosen for a field of a node, dotted; null where the loop says it, or nothing is known. */
export function useDecided(node: string, field: string): Decided | null {
  const path = `nodes.${node}.${field}`;
  const found = useSync((state) =>
    state.check?.plan?.decisions.find((decision) => decision.path === path),
  );
  return useMemo(() => (found ? asDecided(found) : null), [found]);
}

/** All that was chosen for a node. */
export function useAllDecided(node: string): readonly Decided[] {
  const decisions = useSync((state) => state.check?.plan?.decisions ?? NONE);
  return useMemo(
    () =>
      decisions
        .filter((decision) => decision.path.startsWith(`nodes.${node}.`))
        .map((decision) => asDecided(decision)),
    [decisions, node],
  );
}

function asDecided({ path, value, reason }: PlannedDecision): Decided {
  return { path, value: (value ?? null) as Json, text: decidedText(value), why: reason };
}

/** A chosen value as people read it. */
export function decidedText(value: unknown): string {
  if (value === null || value === undefined) return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "string" ? value : JSON.stringify(value);
}
