import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Pin, RotateCcw } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { toast } from "sonner";
import {
  fetchVersion,
  fetchVersionDiff,
  fetchVersions,
  labelVersion,
  restoreVersion,
} from "@/api/routes";
import type { LoopVersion, VersionDiff } from "@/api/types";
import { fromSpec } from "@/document/convert";
import type { LoopDocument } from "@/document/types";
import { formatPlural } from "@/lib/format";
import { useCatalog, useDocument, useOpenLoop, useSync } from "@/state/document/context";
import { differenceText, documentDifferences } from "@/state/sync/merge";
import { useAttempt } from "@/state/useAttempt";
import { Ago } from "@/ui/Ago";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { CONTROL } from "@/ui/control";
import { Segmented } from "@/ui/Segmented";
import { Failed, Loading } from "@/ui/States";
import { VersionGraph } from "./VersionGraph";

const PAGE = 50;

export function History({ loopId, onRestored }: { loopId: string; onRestored: () => void }) {
  const { sync } = useOpenLoop();
  const revision = useSync((state) => state.revision);
  const { attempt } = useAttempt("versions", loopId);
  const versions = useInfiniteQuery({
    queryKey: ["versions", loopId, revision],
    queryFn: ({ pageParam }) => fetchVersions(loopId, pageParam, PAGE),
    initialPageParam: null as number | null,
    getNextPageParam: ({ items }) => (items.length < PAGE ? null : (items.at(-1)?.version ?? null)),
    staleTime: 0,
  });
  const [chosenNumber, choose] = useState<number | null>(null);

  if (versions.isPending) return <Loading label="Loading the history" rows={6} />;
  if (versions.isError)
    return <Failed title="The history could not be loaded" error={versions.error} />;
  const all = versions.data.pages.flatMap((page) => page.items);
  const newest = all[0];
  const chosen = all.find((one) => one.version === chosenNumber) ?? all[1] ?? newest;
  if (!newest || !chosen) return null;

  const restore = () =>
    attempt(async () => {
      const loop = await restoreVersion(loopId, chosen.version, revision);
      sync?.adopt(loop, `Restore version ${chosen.version}`);
      toast.success(`Version ${chosen.version} is restored. Undo reverts this.`);
      onRestored();
    });
  return (
    <div className="grid h-[60vh] grid-cols-[18rem_minmax(0,1fr)] overflow-hidden rounded-2 border border-line">
      <div className="overflow-y-auto border-line border-r">
        <ul aria-label="Versions">
          {all.map((version) => (
            <VersionRow
              key={version.version}
              version={version}
              isNewest={version === newest}
              isChosen={version === chosen}
              onChoose={() => choose(version.version)}
            />
          ))}
        </ul>
        {versions.hasNextPage ? (
          <Button className="m-2" onClick={() => void versions.fetchNextPage()}>
            Older versions
          </Button>
        ) : null}
      </div>
      <section aria-label={`Version ${chosen.version}`} className="flex min-h-0 min-w-0 flex-col">
        <header className="flex items-center gap-2 border-line border-b p-2">
          <VersionLabel
            key={chosen.version}
            version={chosen}
            onLabel={(label) => void attempt(() => labelVersion(loopId, chosen.version, label))}
          />
          <Button
            look="primary"
            icon={<RotateCcw size={14} />}
            disabled={chosen === newest}
            onClick={() => void restore()}
          >
            Restore
          </Button>
        </header>
        <div className="min-h-0 flex-1 overflow-y-auto">
          <VersionChanges loopId={loopId} version={chosen} revision={revision} />
        </div>
      </section>
    </div>
  );
}

interface VersionLabelProps {
  version: LoopVersion;
  onLabel: (label: string | null) => void;
}

function VersionLabel({ version, onLabel }: VersionLabelProps) {
  const [typed, setTyped] = useState(version.label ?? "");
  useEffect(() => setTyped(version.label ?? ""), [version.label]);
  const label = typed.trim() || null;
  return (
    <form
      className="flex min-w-0 flex-1 items-center gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        onLabel(label);
      }}
    >
      <input
        aria-label={`Name of version ${version.version}`}
        placeholder="Name this version"
        maxLength={200}
        className={`${CONTROL} min-w-0 flex-1`}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
      />
      <Button type="submit" disabled={label === version.label}>
        {label === null && version.label !== null ? "Remove name" : "Name"}
      </Button>
    </form>
  );
}

interface VersionRowProps {
  version: LoopVersion;
  isNewest: boolean;
  isChosen: boolean;
  onChoose: () => void;
}

function VersionRow({ version, isNewest, isChosen, onChoose }: VersionRowProps) {
  return (
    <li>
      <button
        type="button"
        aria-pressed={isChosen}
        onClick={onChoose}
        className="flex w-full flex-col gap-1 border-line border-b px-3 py-2 text-left hover:bg-hover aria-pressed:bg-accent-soft"
      >
        <span className="flex w-full items-center gap-2 text-sm">
          <span className="min-w-0 flex-1 truncate font-medium" title={versionTitle(version)}>
            {versionTitle(version)}
          </span>
          {version.is_kept ? (
            <Pin size={12} className="shrink-0 text-muted" aria-label="Kept permanently" />
          ) : null}
        </span>
        <span className="flex w-full items-center gap-2 text-muted text-xs">
          <span className="tabular flex-1">
            Version {version.version} · <Ago at={version.saved_at} />
          </span>
          {version.runs > 0 ? (
            <Badge tone="accent">{formatPlural(version.runs, "run")}</Badge>
          ) : null}
          {isNewest ? <Badge>now</Badge> : null}
        </span>
      </button>
    </li>
  );
}

function versionTitle({ label, reason, restored_from }: LoopVersion): string {
  if (label) return label;
  if (reason === "created") return "Created";
  return reason === "restored" ? `Restored from version ${restored_from}` : "Edited";
}

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
  revision: string;
}

type View = "said" | "graph" | "lines";
const VIEWS: readonly { value: View; label: string }[] = [
  { value: "said", label: "In words" },
  { value: "graph", label: "Graph" },
  { value: "lines", label: "Text" },
];

function VersionChanges(props: VersionChangesProps) {
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
        {view === "lines" ? (
          <TextChanges {...props} />
        ) : then.isPending ? (
          <Loading label="Comparing" />
        ) : then.isError ? (
          <Failed title="The version could not be loaded" error={then.error} />
        ) : !before ? (
          <p className="p-4 text-muted text-sm">
            This version is invalid; only its text can be shown.
          </p>
        ) : view === "said" ? (
          <VersionWords before={before} after={now} />
        ) : (
          <VersionGraph before={before} after={now} />
        )}
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

function VersionWords({ before, after }: { before: LoopDocument; after: LoopDocument }) {
  const catalog = useCatalog();
  const groups = useMemo(() => {
    const groups = new Map<string, string[]>();
    for (const difference of documentDifferences(before, after)) {
      const { where, what } = differenceText(catalog, difference);
      groups.set(where, [...(groups.get(where) ?? []), what]);
    }
    return [...groups];
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
