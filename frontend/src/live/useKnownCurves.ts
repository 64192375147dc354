import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { fetchCurves } from "@/api/routes";
import { useLive } from "./hooks";
import type { LiveRun } from "./LiveRun";

const REFRESH = 30_000;

/** By metric, the nodes that ever told it. Changes only when one is heard of for the first time. */
export function useKnownCurves(live: LiveRun | null): ReadonlyMap<string, readonly string[]> {
  const isWhole = useLive("status", () => live?.isWhole ?? true, true);
  const isEnded = useLive("status", () => live?.connection === "ended", false);
  const told = useLive("series", () => (live ? namesOf(live) : ""), "");
  const all = useQuery({
    queryKey: ["run", live?.id, "curves"],
    queryFn: ({ signal }) => fetchCurves(live?.id ?? "", {}, signal),
    enabled: live !== null && !isWhole,
    refetchInterval: isEnded ? false : REFRESH,
    select: (found) => found.curves.map(({ node, metric }) => `${metric}\n${node}`).join("\t"),
  });
  const before = all.data ?? "";
  return useMemo(() => {
    const known = new Map<string, string[]>();
    for (const line of new Set([...before.split("\t"), ...told.split("\t")])) {
      const [metric, node] = line.split("\n");
      if (metric && node) known.set(metric, [...(known.get(metric) ?? []), node]);
    }
    return known;
  }, [before, told]);
}

function namesOf(live: LiveRun): string {
  const { series } = live.state;
  return [...series]
    .flatMap(([metric, nodes]) => [...nodes.keys()].map((node) => `${metric}\n${node}`))
    .join("\t");
}
