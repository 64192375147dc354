import { createContext, useContext } from "react";
import { useLiveRun } from "./hooks";
import type { LiveRun } from "./LiveRun";

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
