import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useDocument } from "@/document/context";

/** A question about the loop as the service last wrote it; asked again once that changes. */
export function useAsked<T>(
  key: readonly unknown[],
  ask: (yaml: string, signal: AbortSignal) => Promise<T>,
  isEnabled = true,
) {
  const text = useDocument((state) => state.text);
  return useQuery({
    queryKey: ["preview", ...key, text],
    queryFn: ({ signal }) => ask(text, signal),
    enabled: isEnabled && text !== "",
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
    retry: false,
    refetchOnWindowFocus: false,
  });
}
