import type { LiveRun } from "@/live/LiveRun";

export type PaceState =
  | "busy"
  | "starved"
  | "blocked"
  | "evaluates"
  | "rests"
  | "none"
  | "starting";

export interface Pace {
  state: PaceState;
  share: number;
  /** The stage that takes most of the step's time, if it is one of this node; and its share, where that is known. */
  bottleneck: string | null;
  bottleneckShare: number | null;
}

export const NO_PACE: Pace = { state: "none", share: 0, bottleneck: null, bottleneckShare: null };

const MIN_WAIT = 0.3;

export function paceOf(live: LiveRun, node: string): Pace {
  const { gauges } = live.state;
  const gauge = gauges?.nodes?.[node];
  const stages = bottleneckOf(live, node);
  const busy = gauge?.busy ?? null;
  if (!gauge || busy === null) {
    const hasStepped = (gauges?.step_seconds ?? null) !== null;
    return { state: hasStepped && !gauge ? "rests" : "none", share: 0, ...stages };
  }
  if (gauge.evaluation) return { state: "evaluates", share: busy, ...stages };
  const [starved, blocked] = [gauge.starved ?? 0, gauge.blocked ?? 0];
  const longest = Math.max(starved, blocked);
  if (longest < MIN_WAIT || longest <= busy) {
    return { state: "busy", share: busy, ...stages };
  }
  return { state: starved >= blocked ? "starved" : "blocked", share: longest, ...stages };
}

export function hasNotBegun(live: LiveRun): boolean {
  const state = live.run?.state ?? live.state.state;
  return state === "queued" || state === "starting";
}

function bottleneckOf({ state: { gauges } }: LiveRun, node: string) {
  const stage = gauges?.bottleneck;
  if (!stage?.startsWith(`${node}.`)) return { bottleneck: null, bottleneckShare: null };
  const bottleneckShare = gauges?.stages?.[stage]?.share ?? null;
  return { bottleneck: stage.slice(node.length + 1), bottleneckShare };
}
