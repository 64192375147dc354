import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { fetchCheckpoints } from "@/api/routes";
import { useLive } from "@/live/hooks";

/** Steps of the checkpoints that are kept, asked anew when one is written; null: not known. */
export function useKept(): ReadonlySet<number> | null {
  const id = useLive("status", (live) => live.id, "");
  const written = useLive("series", (live) => live.state.checkpoints.length, 0);
  const { data } = useQuery({
    queryKey: ["run", id, "checkpoints", written],
    queryFn: () => fetchCheckpoints(id),
    enabled: id !== "" && written > 0,
    placeholderData: (before) => before,
  });
  return useMemo(() => (data ? new Set(data.steps) : null), [data]);
}
