import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { fetchCurves } from "@/api/routes";
import type { CurveName } from "@/catalog/charts";
import { BUCKETS, bucketCurves, type Curve, curveKey } from "@/live/curves";
import { useLive } from "@/live/hooks";
import type { LiveRun } from "@/live/LiveRun";
import type { Zoom } from "./zoom";

/** New points come from the stream; after so many steps buckets take their place. */
const STEPS_BETWEEN = 500;

/** What the service has of these curves; null where all of it is in the page already. */
export function useCurves(
  live: LiveRun,
  curves: readonly CurveName[],
  zoom: Zoom | null,
  isWanted: boolean,
): ReadonlyMap<string, Curve> | null {
  const isWhole = useLive("status", () => live.isWhole, true);
  const epoch = useLive("series", () => Math.floor((live.state.step ?? 0) / STEPS_BETWEEN), 0);
  const metrics = curves.map(curveKey);
  const range = zoom ? { from: Math.floor(zoom.min), to: Math.ceil(zoom.max) } : {};
  const found = useQuery({
    queryKey: ["run", live.id, "curves", metrics, range, epoch],
    queryFn: ({ signal }) => fetchCurves(live.id, { metrics, buckets: BUCKETS, ...range }, signal),
    enabled: isWanted && !isWhole,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 30_000,
  });
  const { data } = found;
  return useMemo(
    () => (isWhole || !data ? null : bucketCurves(data.series, data.width)),
    [isWhole, data],
  );
}
