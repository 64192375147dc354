import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { useDocument } from "@/state/document/context";

/**
 * A question about the loop as the service last wrote it; asked again once that changes. Where the loop cannot be
 * read meanwhile, `last` is what was answered before.
 */
export function usePreviewQuery<T>(
  key: readonly unknown[],
  ask: (yaml: string, signal: AbortSignal) => Promise<T>,
  isEnabled = true,
) {
  const text = useDocument((state) => state.text);
  const asked = useQuery({
    queryKey: ["preview", ...key, text],
    queryFn: ({ signal }) => ask(text, signal),
    enabled: isEnabled && text !== "",
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
    retry: false,
    refetchOnWindowFocus: false,
  });
  const about = key.join("\n");
  const last = useRef<{ about: string; data: T } | null>(null);
  if (asked.data !== undefined && !asked.isPlaceholderData)
    last.current = { about, data: asked.data };
  return { ...asked, last: last.current?.about === about ? last.current.data : undefined };
}
