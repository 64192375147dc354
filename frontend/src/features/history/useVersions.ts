import { useInfiniteQuery } from "@tanstack/react-query";
import { fetchVersions } from "@/api/routes";

const PAGE = 50;

/** Versions of a loop, the newest first, page by page. */
export function useVersions(loopId: string, revision: string) {
  return useInfiniteQuery({
    queryKey: ["versions", loopId, revision],
    queryFn: ({ pageParam }) => fetchVersions(loopId, pageParam, PAGE),
    initialPageParam: null as number | null,
    getNextPageParam: ({ items }) => (items.length < PAGE ? null : (items.at(-1)?.version ?? null)),
    staleTime: 0,
  });
}
