import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { fetchRun } from "@/api/routes";
import { isObject } from "@/lib/paths";
import { useRecord } from "@/live/hooks";
import { useDocument } from "@/state/document/context";

/** Id of the run from whose checkpoint the shown one started; null: it began anew. */
export function useParentId(): string | null {
  const live = useRecord();
  return live?.run?.parent_id ?? null;
}

/** What the dotted curves are. */
export function ParentLink() {
  const id = useParentId();
  const { data, isError } = useQuery({
    queryKey: ["runs", "one", id],
    queryFn: () => fetchRun(id ?? ""),
    enabled: id !== null,
    staleTime: 60_000,
    retry: false,
  });
  if (id === null) return null;
  if (isError) return <span className="text-muted text-xs">fork of a run that was deleted</span>;
  return (
    <span className="flex min-w-0 items-center gap-1.5 text-xs">
      <svg width="14" height="4" aria-hidden="true" className="shrink-0">
        <line x2="14" y1="2" y2="2" stroke="var(--muted)" strokeWidth="2" strokeDasharray="2 3" />
      </svg>
      <span className="shrink-0 text-muted">fork of</span>
      <Link
        href={`/runs/${encodeURIComponent(id)}`}
        className="max-w-48 truncate text-accent-text underline"
        title={`Dotted: the run that this one was forked from, ${data?.name ?? id}`}
      >
        {data?.name ?? id}
      </Link>
    </span>
  );
}

/** The sweep that the run is part of. */
export function SweepLink() {
  const of = useDocument(({ document }) => {
    const run = document.rest.run;
    const sweep = isObject(run) ? run.sweep : null;
    return isObject(sweep) && typeof sweep.of === "string" ? sweep.of : null;
  });
  if (of === null) return null;
  return (
    <Link
      href={`/sweeps/${encodeURIComponent(of)}`}
      className="text-accent-text text-xs underline"
      title={of}
    >
      part of a sweep
    </Link>
  );
}
