import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { fetchRun, fetchRunChanges, fetchRunCurves } from "@/api/routes";
import type { Catalog, RunSummary } from "@/api/types";
import { metricOf, orderMetrics, SHOWN_AT_FIRST } from "@/catalog/metrics";
import { isFinal } from "@/live/reducer";
import { colorOf, type Difference, differences } from "./compared";

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
    () => found.map((run) => ({ run, color: colorOf(ids.indexOf(run.id)) })),
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
export function useDifferences(ids: readonly string[]): {
  found: readonly Difference[];
  isLoading: boolean;
  error: unknown;
} {
  const [first = "", ...others] = ids;
  const changes = useQueries({
    queries: others.map((other) => ({
      queryKey: ["runChanges", first, other],
      queryFn: () => fetchRunChanges(first, other),
      staleTime: Number.POSITIVE_INFINITY,
    })),
  });
  return {
    found: differences(changes.map(({ data }) => data?.changes ?? [])),
    isLoading: changes.some((one) => one.isPending),
    error: changes.find((one) => one.isError)?.error ?? null,
  };
}
