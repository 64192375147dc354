import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { fetchSamples } from "@/api/routes";
import type { SampleRow } from "@/api/types";
import { useLiveRun, useLiveVersion } from "@/live/hooks";

const LIMIT = 1000;

interface SampleRows {
  rows: SampleRow[];
  steps: number[];
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
  const newest = useMemo(() => live?.state.samples.at(-1)?.step ?? null, [live, version]);
  const step = chosen ?? newest;
  const query = useQuery({
    queryKey: ["samples", live?.id, step],
    queryFn: () => fetchSamples(live?.id ?? "", step, LIMIT),
    enabled: live !== null && step !== null,
    placeholderData: (before) => before,
    staleTime: 30_000,
  });
  return {
    rows: query.data?.rows ?? [],
    steps: query.data?.steps ?? [],
    step,
    newest,
    isLoading: query.isPending && step !== null,
    error: query.error,
  };
}
