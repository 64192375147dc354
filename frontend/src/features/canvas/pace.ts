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
  /** Of the stage that takes most of the step's time, if it is one of this node: its name and its share. */
  bottleneck: string | null;
}

const MIN_WAIT = 0.3;

export function paceOf(live: LiveRun, node: string): Pace {
  const { gauges } = live.state;
  const gauge = gauges?.nodes?.[node];
  const bottleneck = bottleneckOf(live, node);
  const busy = gauge?.busy ?? null;
  if (!gauge || busy === null) {
    const hasStepped = (gauges?.step_seconds ?? null) !== null;
    return { state: hasStepped && !gauge ? "rests" : "none", share: 0, bottleneck };
  }
  if (gauge.evaluation) return { state: "evaluates", share: busy, bottleneck };
  const [starved, blocked] = [gauge.starved ?? 0, gauge.blocked ?? 0];
  const longest = Math.max(starved, blocked);
  if (longest < MIN_WAIT || longest <= busy) {
    return { state: "busy", share: busy, bottleneck };
  }
  return { state: starved >= blocked ? "starved" : "blocked", share: longest, bottleneck };
}

export function hasNotBegun(live: LiveRun): boolean {
  const state = live.run?.state ?? live.state.state;
  return state === "queued" || state === "starting";
}

function bottleneckOf(live: LiveRun, node: string): string | null {
  const stage = live.state.gauges?.bottleneck;
  if (!stage?.startsWith(`${node}.`)) return null;
  const share = live.state.gauges?.stages?.[stage]?.share;
  return `${stage.slice(node.length + 1)}\t${share ?? ""}`;
}
