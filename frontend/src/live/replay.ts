/**
 * A run as it stood at a moment of its past, from what it recorded.
 *
 *     marks before the window + events of the window up to t ──applyEvent──▶ state
 */
import type { RunEvent } from "@/api/types";
import { applyEvent } from "./reducer";
import { createLiveState, type LiveState } from "./state";

/** What a replay stands on. */
export interface Record {
  /** Events of the whole run that are worth knowing at any moment; none where the events are whole. */
  marks: readonly RunEvent[];
  /** Without a gap, in order. */
  events: readonly RunEvent[];
}

export function replayState(
  { marks, events }: Record,
  time: number,
  seq = Number.POSITIVE_INFINITY,
): LiveState {
  const state = createLiveState();
  const first = events[0]?.seq ?? Number.POSITIVE_INFINITY;
  for (const event of marks) if (event.seq < first) applyEvent(state, event);
  playOn(state, events, time, seq);
  return state;
}

/** Applies what came after the state, up to a moment. */
export function playOn(
  state: LiveState,
  events: readonly RunEvent[],
  time: number,
  seq = Number.POSITIVE_INFINITY,
): void {
  for (let at = firstAfter(events, state.lastSeq); at < events.length; at += 1) {
    const event = events[at];
    if (!event || event.seq > seq || Date.parse(event.at) > time) break;
    applyEvent(state, event);
  }
}

function firstAfter(events: readonly RunEvent[], seq: number): number {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((events[middle]?.seq ?? 0) <= seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The last event of a step and of those before it. */
export function endOfStep(events: readonly RunEvent[], step: number): RunEvent | null {
  return events.findLast((event) => typeof event.step === "number" && event.step <= step) ?? null;
}
