import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { fetchSampleTokens } from "@/api/routes";
import type { SampleRow, SampleTokens } from "@/api/types";
import { useLiveRun } from "@/live/hooks";

const NONE: readonly SampleTokens[] = [];

/** By row, what the loss saw of its tokens; asked for where any row of the step has it. */
export function useSampleTokens(
  step: number,
  rows: readonly SampleRow[],
): ReadonlyMap<string, SampleTokens> {
  const live = useLiveRun();
  const found = useQuery({
    queryKey: ["samples", live?.id, step, "tokens"],
    queryFn: () => fetchSampleTokens(live?.id ?? "", step),
    enabled: live !== null && rows.some((row) => row.has_tokens),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const known = found.data?.rows ?? NONE;
  return useMemo(() => {
    const byRow = new Map<string, SampleTokens>();
    // Of several learners of a row the first is who wrote it.
    for (const one of known) if (!byRow.has(String(one.id))) byRow.set(String(one.id), one);
    return byRow;
  }, [known]);
}
