import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { fetchSamples } from "@/api/routes";
import type { SampleRow } from "@/api/types";
import { useLive, useLiveRun, useLiveVersion } from "@/live/hooks";
import { useReplayStep } from "@/live/recordContext";
import { isFinal } from "@/live/reducer";

const LIMIT = 1000;
/** How long the newest step stays on screen at least: what changes faster cannot be read. */
export const MIN_SHOWN = 4000;

interface SampleRows {
  rows: SampleRow[];
  steps: number[];
  /** Of which step the rows are: of one before, while those that are asked for are on their way. */
  step: number | null;
  newest: number | null;
  isLoading: boolean;
  error: unknown;
}

/** Rows of one step; of the newest while none is chosen. Whole texts come from the run's folder. */
export function useSampleRows(chosen: number | null): SampleRows {
  const live = useLiveRun();
  const version = useLiveVersion("samples");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version says that there are new samples
  const told = useMemo(() => [...new Set(live?.state.sampleSteps)], [live, version]);
  const newest = told.at(-1) ?? null;
  const isReplay = useReplayStep() !== null;
  const isOver = useLive("status", (one) => isFinal(one.run?.state ?? one.state.state), false);
  const settled = useSettled(newest);
  // In a replay one goes to a step to see it; after the end nothing newer comes.
  const shown = isReplay || isOver ? newest : settled;
  const step = chosen ?? shown;
  const query = useQuery({
    queryKey: ["samples", live?.id, step],
    queryFn: () => fetchSamples(live?.id ?? "", step, LIMIT),
    enabled: live !== null && step !== null,
    placeholderData: (before) => (step === null ? undefined : before),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return {
    rows: query.data?.rows ?? [],
    steps: [...new Set([...(query.data?.steps ?? []), ...told])].toSorted((a, b) => a - b),
    step: query.data?.rows[0]?.step ?? step,
    newest,
    isLoading: query.isPending && step !== null,
    error: query.error,
  };
}

/** A value that changes at most every few seconds; the first is taken at once. */
function useSettled(value: number | null): number | null {
  const [settled, settle] = useState({ value, at: 0 });
  useEffect(() => {
    if (value === settled.value) return;
    const take = () => settle({ value, at: Date.now() });
    const wait = settled.value === null ? 0 : settled.at + MIN_SHOWN - Date.now();
    if (wait <= 0) {
      take();
      return;
    }
    const timer = setTimeout(take, wait);
    return () => clearTimeout(timer);
  }, [value, settled]);
  return settled.value;
}
