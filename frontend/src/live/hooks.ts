/** Narrow views of the watched run. Each gives a primitive or a versioned value, so that little repaints. */
import { createContext, useCallback, useContext, useSyncExternalStore } from "react";
import { formatRate } from "@/lib/format";
import type { LiveRun } from "./LiveRun";
import type { Topic } from "./reducer";

export const LiveContext = createContext<LiveRun | null>(null);

export function useLiveRun(): LiveRun | null {
  return useContext(LiveContext);
}

/** A value of the watched run, read again when the topic has news. Return primitives or stable objects. */
export function useLive<T>(topic: Topic, read: (live: LiveRun) => T, without: T): T {
  const live = useContext(LiveContext);
  const subscribe = useCallback(
    (watcher: () => void) => live?.watch(topic, watcher) ?? (() => {}),
    [live, topic],
  );
  return useSyncExternalStore(subscribe, () => (live ? read(live) : without));
}

/** Changes with every piece of news of a topic; for readers of mutable state. */
export function useLiveVersion(topic: Topic): number {
  return useLive(topic, (live) => live.version(topic), 0);
}

export type Activity = "running" | "idle" | undefined;

export function useNodeActivity(node: string): Activity {
  return useLive<Activity>(
    "gauges",
    (live) => (isNodeRunning(live, node) ? "running" : "idle"),
    undefined,
  );
}

function isNodeRunning(live: LiveRun, node: string): boolean {
  return isAnyRunning(live, (stage) => stage.startsWith(`${node}.`));
}

/** A stage that runs, or that ran since the last time the screen was told: short ones light up as well. */
function isAnyRunning(live: LiveRun, isMeant: (stage: string) => boolean): boolean {
  if (live.connection === "ended") return false;
  for (const stage of live.state.running.keys()) if (isMeant(stage)) return true;
  // What is read of the past is no news.
  if (live.connection === "loading") return false;
  for (const [stage, seq] of live.state.finished)
    if (seq > live.shownSeq && isMeant(stage)) return true;
  return false;
}

export function useIsBottleneck(node: string): boolean {
  return useLive(
    "gauges",
    (live) => {
      const stage = live.state.gauges?.bottleneck;
      return stage === node || (stage?.startsWith(`${node}.`) ?? false);
    },
    false,
  );
}

export interface EdgeActivity {
  label: string;
  isActive: boolean;
  /** Whether most of the step's time goes into that stage. */
  isBottleneck: boolean;
}

/** The rate of the stage that gives an edge its rows, and whether it is giving now. */
export function useEdgeActivity(stage: string): EdgeActivity | null {
  const label = useLive(
    "gauges",
    (live) => {
      const rate = live.state.gauges?.stages?.[stage]?.samples_per_second;
      return rate === null || rate === undefined ? "" : formatRate(rate, "rows");
    },
    "",
  );
  const isActive = useLive<boolean | null>(
    "gauges",
    (live) => isAnyRunning(live, (one) => one === stage),
    null,
  );
  const isBottleneck = useLive("gauges", (live) => live.state.gauges?.bottleneck === stage, false);
  return isActive === null ? null : { label, isActive, isBottleneck };
}
