import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { fetchVersion, fetchVersionDiff } from "@/api/routes";
import type { LoopVersion, VersionDiff } from "@/api/types";
import { fromSpec } from "@/document/convert";
import type { LoopDocument } from "@/document/types";
import { useCatalog, useDocument } from "@/state/document/context";
import { differenceText, documentDifferences } from "@/state/sync/merge";
import { Segmented } from "@/ui/Segmented";
import { Failed, Loading } from "@/ui/States";
import { VersionGraph } from "./VersionGraph";

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

type View = "said" | "graph" | "lines";
const VIEWS: readonly { value: View; label: string }[] = [
  { value: "said", label: "In words" },
  { value: "graph", label: "Graph" },
  { value: "lines", label: "Text" },
];

/** What changed from a version to what the loop is now: in words, on the graph, in the text. */
export function VersionChanges(props: VersionChangesProps) {
  const { loopId, version } = props;
  const [view, setView] = useState<View>("said");
  const now = useDocument((state) => state.document);
  const then = useQuery({
    queryKey: ["versions", loopId, version.revision, version.version, "text"],
    queryFn: () => fetchVersion(loopId, version.version),
  });
  const before = useMemo(
    () => (then.data?.spec ? { ...fromSpec(then.data.spec), name: then.data.name } : null),
    [then.data],
  );
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex shrink-0 items-center border-line border-b px-2 py-1">
        <span className="flex-1 text-muted text-xs">Changes since then</span>
        <Segmented label="How changes are shown" value={view} options={VIEWS} onChange={setView} />
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto">
        {view === "lines" ? <TextChanges {...props} /> : null}
        {view !== "lines" && then.isPending ? <Loading label="Comparing" /> : null}
        {view !== "lines" && then.isError ? (
          <Failed title="The version could not be loaded" error={then.error} />
        ) : null}
        {view !== "lines" && then.data && !before ? (
          <p className="p-4 text-muted text-sm">
            This version is invalid; only its text can be shown.
          </p>
        ) : null}
        {view === "said" && before ? <VersionWords before={before} after={now} /> : null}
        {view === "graph" && before ? <VersionGraph before={before} after={now} /> : null}
      </div>
    </div>
  );
}

function TextChanges({ loopId, version, revision }: VersionChangesProps) {
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

/** What is different in words, node by node. */
function VersionWords({ before, after }: { before: LoopDocument; after: LoopDocument }) {
  const catalog = useCatalog();
  const groups = useMemo(() => {
    const found = new Map<string, string[]>();
    for (const difference of documentDifferences(before, after)) {
      const { where, what } = differenceText(catalog, difference);
      found.set(where, [...(found.get(where) ?? []), what]);
    }
    return [...found];
  }, [catalog, before, after]);
  if (groups.length === 0)
    return <p className="p-4 text-muted text-sm">No change that affects a run.</p>;
  return (
    <dl className="p-4 text-sm">
      {groups.map(([where, what]) => (
        <div key={where} className="mb-3">
          <dt className="font-semibold">{where}</dt>
          {what.map((words) => (
            <dd key={words} className="break-words pl-3 text-muted">
              {words}
            </dd>
          ))}
        </div>
      ))}
    </dl>
  );
}
