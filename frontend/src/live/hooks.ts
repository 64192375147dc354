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
  if (live.connection === "ended") return false;
  for (const span of live.state.running.values()) if (span.node === node) return true;
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
}

/** The rate at which an edge's source gives rows, and whether it is giving now. */
export function useEdgeActivity(source: string): EdgeActivity | null {
  const label = useLive(
    "gauges",
    (live) => {
      const rate = live.state.gauges?.nodes?.[source]?.samples_per_second;
      return rate === null || rate === undefined ? "" : formatRate(rate, "rows");
    },
    "",
  );
  const activity = useNodeActivity(source);
  return activity === undefined ? null : { label, isActive: activity === "running" };
}
