import { queryOptions, type UseQueryResult, useQuery } from "@tanstack/react-query";
import { fetchCatalog } from "@/api/routes";
import type { Catalog } from "@/api/types";

/** The catalog of the server, asked for once: it is the same as long as the server is. */
export const catalogQuery = queryOptions({
  queryKey: ["catalog"],
  queryFn: () => fetchCatalog(),
  staleTime: Number.POSITIVE_INFINITY,
});

export function useServerCatalog(): UseQueryResult<Catalog> {
  return useQuery(catalogQuery);
}
