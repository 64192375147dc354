import { useQuery } from "@tanstack/react-query";
import { fetchLoopChanges } from "@/api/routes";

/** What differs from a run's loop to the loop that it came from, as that is saved by now. */
export function useLoopChanges(run: string, loop: string | null, isAsked = true) {
  return useQuery({
    queryKey: ["runChanges", run, "loop", loop],
    queryFn: () => fetchLoopChanges(run, loop ?? ""),
    enabled: isAsked && loop !== null,
    staleTime: 0,
    // A loop that was deleted since is no loop to go on with.
    retry: false,
  });
}
