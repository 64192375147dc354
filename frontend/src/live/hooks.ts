/** Narrow views of the watched run. Each gives a primitive or a versioned value, so that little repaints. */
import { createContext, useCallback, useContext, useRef, useSyncExternalStore } from "react";
import { shallow } from "zustand/shallow";
import type { Gauges } from "@/api/types";
import { formatCount, formatPerSecond, formatRate } from "@/lib/format";
import type { LiveRun } from "./LiveRun";
import type { Topic } from "./reducer";
import type { LiveAlert } from "./state";

export const LiveContext = createContext<LiveRun | null>(null);

export function useLiveRun(): LiveRun | null {
  return useContext(LiveContext);
}

/**
 * A value of the watched run, read again when the topic has news.
 *
 * @param read gives an equal value until there is news: a primitive, or an object that is compared key by key; nothing
 *   of the clock. React reads until two values are the same, and gives up after fifty.
 */
export function useLive<T>(topic: Topic, read: (live: LiveRun) => T): T | null;
export function useLive<T>(topic: Topic, read: (live: LiveRun) => T, without: T): T;
export function useLive<T>(
  topic: Topic,
  read: (live: LiveRun) => T,
  without: T | null = null,
): T | null {
  const live = useContext(LiveContext);
  const subscribe = useCallback(
    (watcher: () => void) => live?.watch(topic, watcher) ?? (() => {}),
    [live, topic],
  );
  const last = useRef(without);
  return useSyncExternalStore(subscribe, () => {
    const value = live ? read(live) : without;
    if (!shallow(last.current, value)) last.current = value;
    return last.current;
  });
}

/** Changes with every piece of news of a topic; for readers of mutable state. */
export function useLiveVersion(topic: Topic): number {
  return useLive(topic, (live) => live.version(topic), 0);
}

export type Activity = "running" | "idle" | undefined;

export function useNodeActivity(node: string): Activity {
  return useLive<Activity>(
    "gauges",
    (live) => (isRunning(live, node) ? "running" : "idle"),
    undefined,
  );
}

/** A stage of it runs, or ran since the last time the screen was told: short ones light up as well. */
function isRunning({ connection, state, shownSeq }: LiveRun, node: string): boolean {
  if (connection === "ended") return false;
  const just = [...state.finished].filter(([, seq]) => seq > shownSeq).map(([stage]) => stage);
  const stages = [...state.running.keys(), ...(connection === "loading" ? [] : just)];
  return stages.some((stage) => stage.startsWith(`${node}.`));
}

/**
 * What an edge really delivers.
 *
 * @param edge its key in the gauges
 * @param stage the stage that gives its rows
 */
export function useEdgeActivity(edge: string, stage: string) {
  return useLive("gauges", (live) => {
    const { gauges } = live.state;
    const gauge = gauges?.edges?.[edge];
    const rate = gauge?.rows_per_second ?? null;
    return {
      label: rate === null ? "" : formatPerSecond(rate),
      isActive: live.hasFlow(edge),
      isBottleneck: gauges?.bottleneck === stage,
      isEvaluation: gauge?.evaluation ?? false,
    };
  });
}

export function useEdgeFacts(edge: string, stage: string): string {
  return useLive("gauges", (live) => edgeFacts(live.state.gauges, edge, stage), "");
}

export function edgeFacts(gauges: Gauges | null, edge: string, stage: string): string {
  const gauge = gauges?.edges?.[edge];
  const rate = gauge?.rows_per_second ?? null;
  if (!gauges || !gauge || rate === null) return "No rows yet.";
  const busy = gauges.stages?.[stage]?.samples_per_second ?? null;
  const lines: string[] = [];
  if (gauge.evaluation) {
    lines.push("Flows in evaluations only", `${formatRate(rate, "rows")} between evaluations`);
  } else {
    lines.push(`${formatRate(rate, "rows")} of the whole time`);
    if (gauges.step_seconds)
      lines.push(`${formatCount(round(rate * gauges.step_seconds))} rows a step`);
  }
  if (busy !== null) lines.push(`${stage} while busy: ${formatRate(busy, "rows")}`);
  if (gauge.rows > 0) lines.push(`${formatCount(gauge.rows)} rows since the start`);
  return lines.join("\n");
}

function round(count: number): number {
  return Math.round(count * 100) / 100;
}

/** While a run is replayed: the run as it is by now, and the step that is shown. */
export const RecordContext = createContext<{ live: LiveRun; step: number } | null>(null);

/** The run with all that is known of it, whatever moment is shown. */
export function useRecord(): LiveRun | null {
  const live = useLiveRun();
  return useContext(RecordContext)?.live ?? live;
}

/** The step that a replay shows; null where nothing is replayed. */
export function useReplayStep(): number | null {
  return useContext(RecordContext)?.step ?? null;
}

export function isAcknowledged({ run }: LiveRun, { raised }: LiveAlert): boolean {
  return run?.alerts.some((one) => one.seq === raised && one.acknowledged_at !== null) ?? false;
}

export function openAlerts(live: LiveRun): LiveAlert[] {
  return live.state.alerts.filter((alert) => !isAcknowledged(live, alert));
}
