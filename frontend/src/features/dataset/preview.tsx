import { keepPreviousData, type UseQueryResult, useQuery } from "@tanstack/react-query";
import { type ReactNode, useRef } from "react";
import { errorMessage } from "@/api/client";
import { useDocument } from "@/state/document/context";
import { Unanswered } from "@/ui/States";

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

interface PreviewProps<T> {
  asked: Pick<UseQueryResult<T>, "data" | "error" | "isError" | "refetch"> & {
    last: T | undefined;
  };
  loading: string;
  failed: string;
  children: (found: T) => ReactNode;
}

/** What was answered; where the loop cannot be read, what was answered before it, with why. */
export function Preview<T>({ asked, loading, failed, children }: PreviewProps<T>) {
  if (asked.isError && asked.last !== undefined)
    return (
      <>
        <p role="status" className="shrink-0 bg-warning-soft px-4 py-1.5 text-warning text-xs">
          From the last valid state. {errorMessage(asked.error)}
        </p>
        {children(asked.last)}
      </>
    );
  if (asked.isError || asked.data === undefined)
    return <Unanswered query={asked} loading={loading} rows={5} failed={failed} />;
  return children(asked.data);
}
