/** Which edges deliver nothing in any phase: the plan says so, weights alone do not. Pure. */
import type { PlanSummary } from "@/api/types";

export function isAlwaysDead(plan: PlanSummary | null | undefined, key: string): boolean {
  const phases = plan?.phases ?? [];
  return phases.length > 0 && phases.every((phase) => phase.dead_edges.includes(key));
}
