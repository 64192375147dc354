/** From which checkpoint a fork begins. Pure. */

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
    ? `No checkpoint is kept of step ${at} or before; the first is of step ${Math.min(...steps)}.`
    : `Step ${before} is the nearest checkpoint at or before step ${at}: the new run begins there.`;
}
