import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import {
  fetchBlocks,
  fetchCatalog,
  fetchHub,
  fetchLoopPresets,
  fetchRunCurves,
  searchLoops,
} from "@/api/routes";
import type { Block, Catalog, RunCurves, RunSummary } from "@/api/types";
import { tellingMetrics } from "@/catalog/metrics";

export function useLoopPresets() {
  return useQuery({ queryKey: ["presets", "loops"], queryFn: fetchLoopPresets });
}

export const blocksQuery = queryOptions({
  queryKey: ["blocks"],
  queryFn: () => fetchBlocks(),
  staleTime: Number.POSITIVE_INFINITY,
});

/** Building blocks: those that ship with coloop, and those that were saved here. None until they are loaded. */
export function useBlocks(): readonly Block[] {
  return useQuery(blocksQuery).data ?? NO_BLOCKS;
}

const NO_BLOCKS: readonly Block[] = [];

const POLL_MS = 700;

/** Models and datasets on this machine, and downloads; asked again while one goes on. */
export const hubQuery = queryOptions({
  queryKey: ["hub"],
  queryFn: () => fetchHub(),
  refetchInterval: ({ state }) =>
    state.data?.downloads.some(({ state: now }) => now === "running") ? POLL_MS : false,
});

export const catalogQuery = queryOptions({
  queryKey: ["catalog"],
  queryFn: () => fetchCatalog(),
  staleTime: Number.POSITIVE_INFINITY,
});

export function useServerCatalog() {
  return useQuery(catalogQuery);
}

const MAX = 20;
const MIN_LETTERS = 2;

export function useLoopSearch(search: string) {
  const words = search.trim();
  return useQuery({
    queryKey: ["loops", "found", words],
    queryFn: ({ signal }) => searchLoops(words, MAX, signal),
    enabled: words.length >= MIN_LETTERS,
    placeholderData: keepPreviousData,
  });
}

export function hitAddress(loop: string, node: string | null): string {
  return node === null ? `/loops/${loop}` : `/loops/${loop}?${new URLSearchParams({ node })}`;
}

export function nodeOf(search: string): string | null {
  return new URLSearchParams(search).get("node");
}

const BUCKETS = 32;
const MAX_METRICS = 64;

export interface Spark {
  metric: string;
  values: (number | null)[];
}

/** By run; of those that have measured something. All of them are asked for at once. */
const NO_METRICS: ReadonlyMap<string, string> = new Map();

/**
 * A curve of each run, to be drawn small.
 *
 * @param main by run the metric of it, where it is known; of others the one that says most
 */
export function useSparks(
  runs: readonly RunSummary[],
  catalog: Catalog | null,
  main: ReadonlyMap<string, string> = NO_METRICS,
): ReadonlyMap<string, Spark> {
  const chosen = new Map(
    runs.flatMap((run) => {
      const metric = main.get(run.id) ?? tellingMetrics(catalog, Object.keys(run.metrics), 1)[0];
      return metric === undefined ? [] : [[run.id, metric] as const];
    }),
  );
  const asked = runs.filter((run) => chosen.has(run.id));
  const found = useQuery({
    queryKey: ["sparks", ...asked.map((run) => `${run.id} ${run.last_seq} ${chosen.get(run.id)}`)],
    queryFn: () =>
      fetchRunCurves({
        runs: asked.map((run) => run.id),
        metrics: [...new Set(chosen.values())].slice(0, MAX_METRICS),
        buckets: BUCKETS,
      }),
    enabled: asked.length > 0 && catalog !== null,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
  });
  return sparksOf(found.data?.runs ?? [], chosen);
}

export function sparksOf(
  curves: readonly RunCurves[],
  chosen: ReadonlyMap<string, string>,
): ReadonlyMap<string, Spark> {
  return new Map(
    curves.flatMap(({ run, series }) => {
      const metric = chosen.get(run);
      const one = series.find((curve) => `${curve.node}.${curve.metric}` === metric);
      return one && metric ? [[run, { metric, values: one.mean }] as const] : [];
    }),
  );
}
