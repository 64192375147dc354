import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { fetchSampleTokens } from "@/api/routes";
import type { SampleRow, SampleTokens } from "@/api/types";
import { useLiveRun } from "@/live/hooks";
import { idOf } from "./groups";
import { sampleText } from "./sampleText";

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
    const texts = new Map(rows.map((row) => [idOf(row), sampleText(row.completion)]));
    const byRow = new Map<string, SampleTokens>();
    // Of several learners of a row the first is who wrote it.
    for (const one of known) {
      const id = String(one.id);
      if (!byRow.has(id) && isOf(one, texts.get(id))) byRow.set(id, one);
    }
    return byRow;
  }, [known, rows]);
}

/** Whether it was this text that was learned: a lesson that was made of a row has its id, and other words. */
export function isOf({ pieces }: Pick<SampleTokens, "pieces">, completion: string | undefined) {
  const words = (text: string) => text.replace(/⟨\w+⟩/g, "").trimEnd();
  return completion !== undefined && words(pieces.join("")) === words(completion);
}
