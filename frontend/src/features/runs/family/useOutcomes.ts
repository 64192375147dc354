import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { fetchOutcomes } from "@/api/routes";
import type { RunSummary } from "@/api/types";
import type { RunOutcome } from "./outcome";

interface Outcomes {
  byRun: ReadonlyMap<string, RunOutcome>;
  /** By run, its main metric. */
  main: ReadonlyMap<string, string>;
}

/** The main metric of each run, read again when the run has news. */
export function useOutcomes(
  runs: readonly Pick<RunSummary, "id" | "last_seq" | "started_at">[],
): Outcomes {
  const begun = runs.filter((run) => run.started_at !== null);
  const { data } = useQuery({
    queryKey: ["outcomes", ...begun.map((run) => `${run.id} ${run.last_seq}`)],
    queryFn: () => fetchOutcomes(begun.map((run) => run.id)),
    enabled: begun.length > 0,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
    retry: false,
  });
  const found = data?.outcomes ?? [];
  return {
    byRun: new Map(found.map((outcome) => [outcome.run, outcome])),
    main: new Map(
      found.flatMap(({ run, metric, end }) => (metric && end ? [[run, metric] as const] : [])),
    ),
  };
}
