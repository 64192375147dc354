import { useQuery } from "@tanstack/react-query";
import { fetchVersionDiff } from "@/api/routes";
import type { LoopVersion, VersionDiff } from "@/api/types";
import { Failed, Loading } from "@/ui/States";

type Line = VersionDiff["lines"][number];

const LOOK: Record<Line["kind"], { mark: string; said: string; className: string }> = {
  same: { mark: " ", said: "", className: "" },
  added: { mark: "+", said: "now: ", className: "bg-success-soft text-success" },
  removed: { mark: "−", said: "then: ", className: "bg-error-soft text-error" },
  gap: { mark: "⋯", said: "", className: "bg-hover text-muted" },
};

interface VersionChangesProps {
  loopId: string;
  version: LoopVersion;
  /** Of the loop as it is now. */
  revision: string;
}

/** What changed in the text from a version to what the loop is now. */
export function VersionChanges({ loopId, version, revision }: VersionChangesProps) {
  const diff = useQuery({
    queryKey: ["versions", loopId, revision, "diff", version.version],
    queryFn: () => fetchVersionDiff(loopId, version.version),
  });
  if (diff.isPending) return <Loading label="Comparing" />;
  if (diff.isError) return <Failed title="The versions could not be compared" error={diff.error} />;
  if (diff.data.lines.length === 0)
    return <p className="p-4 text-muted text-sm">The text is the same as now.</p>;
  return (
    <ol
      aria-label={`Changes since version ${version.version}`}
      className="overflow-x-auto py-2 font-mono text-xs leading-5"
    >
      {diff.data.lines.map((line, place) => (
        <li key={place} className={`flex w-max min-w-full px-3 ${LOOK[line.kind].className}`}>
          <span aria-hidden="true" className="w-4 shrink-0 select-none">
            {LOOK[line.kind].mark}
          </span>
          <span className="sr-only">{LOOK[line.kind].said}</span>
          <span className="whitespace-pre">{line.text}</span>
        </li>
      ))}
    </ol>
  );
}
