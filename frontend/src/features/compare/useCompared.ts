import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { fetchChanges, fetchRun, fetchRunCurves } from "@/api/routes";
import type { Catalog, RunSummary, SpecChange } from "@/api/types";
import { metricOf, orderMetrics, SHOWN_AT_FIRST } from "@/catalog/metrics";
import { identityColor, MAX_COMPARED } from "@/lib/colors";
import { isFinal } from "@/live/reducer";

const REFRESH = 3000;
const BUCKETS = 400;

export function useCompared(ids: readonly string[], catalog: Catalog | null, showsAll: boolean) {
  const runs = useQueries({
    queries: ids.map((id) => ({
      queryKey: ["runs", "one", id],
      queryFn: () => fetchRun(id),
      refetchInterval: (query: { state: { data?: RunSummary | undefined } }) =>
        query.state.data && isFinal(query.state.data.state) ? (false as const) : REFRESH,
    })),
  });
  const found = runs.flatMap(({ data }) => (data ? [data] : []));
  const names = new Set(found.flatMap((run) => Object.keys(run.metrics).map(metricOf)));
  const metrics = orderMetrics(catalog, names);
  const shown = showsAll ? metrics.slice(0, 64) : metrics.slice(0, SHOWN_AT_FIRST);
  const goesOn = found.some((run) => !isFinal(run.state));
  const curves = useQuery({
    queryKey: ["curves", ...ids, shown.join()],
    queryFn: () => fetchRunCurves({ runs: [...ids], metrics: shown, buckets: BUCKETS }),
    enabled: found.length === ids.length && ids.length > 0,
    placeholderData: keepPreviousData,
    refetchInterval: goesOn ? REFRESH : false,
  });
  const key = found.map((run) => `${run.id} ${run.name} ${run.state}`).join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the same runs are the same list
  const compared = useMemo(
    () => found.map((run) => ({ run, color: identityColor(ids.indexOf(run.id) + 1) })),
    [key],
  );
  return {
    compared,
    curves: curves.data?.runs ?? [],
    metrics,
    isLoading: runs.some((one) => one.isPending) || curves.isPending,
    error: runs.find((one) => one.isError)?.error ?? curves.error,
  };
}

/** In what the loops of the runs differ; the first one is what the others are held against. */
export function useDifferences(ids: readonly string[]) {
  const [first = "", ...others] = ids;
  const changes = useQueries({
    queries: others.map((other) => ({
      queryKey: ["runChanges", first, other],
      queryFn: () => fetchChanges(first, { run: other }),
      staleTime: Number.POSITIVE_INFINITY,
    })),
  });
  return {
    found: differences(changes.map(({ data }) => data?.changes ?? [])),
    isLoading: changes.some((one) => one.isPending),
    error: changes.find((one) => one.isError)?.error ?? null,
  };
}

export interface Compared {
  run: RunSummary;
  color: string;
}

/** The distinct run ids in a query such as `?runs=a,b`, at most `MAX_COMPARED` of them. */
export function askedRuns(search: string): string[] {
  const ids = new URLSearchParams(search).get("runs")?.split(",") ?? [];
  return [...new Set(ids.filter((id) => id !== ""))].slice(0, MAX_COMPARED);
}

/** A path at which some of the loops differ; `values` has one entry per run, in their order. */
export interface Difference {
  path: string;
  where: string;
  values: string[];
}

/** All paths at which the loops differ, from the changes of each further run against the first one. */
export function differences(changes: readonly (readonly SpecChange[])[]): Difference[] {
  const byPath = new Map(changes.flatMap((list) => list.map((change) => [change.path, change])));
  return [...byPath].map(([path, { where, before }]) => {
    const afters = changes.map((list) => list.find((change) => change.path === path)?.after);
    return { path, where, values: [before, ...afters.map((after) => after ?? before)] };
  });
}
