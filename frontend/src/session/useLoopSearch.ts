import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { searchLoops } from "@/api/routes";

const MAX = 20;
const MIN_LETTERS = 2;

/** Nodes and loops that have all the words of a search, in everything that is saved. */
export function useLoopSearch(search: string) {
  const words = search.trim();
  return useQuery({
    queryKey: ["loops", "found", words],
    queryFn: ({ signal }) => searchLoops(words, MAX, signal),
    enabled: words.length >= MIN_LETTERS,
    placeholderData: keepPreviousData,
  });
}

/** Where a loop is opened with a node of it in view. */
export function hitAddress(loop: string, node: string | null): string {
  return node === null ? `/loops/${loop}` : `/loops/${loop}?${new URLSearchParams({ node })}`;
}

/** The node that an address speaks of, or null. */
export function nodeOf(search: string): string | null {
  return new URLSearchParams(search).get("node");
}
