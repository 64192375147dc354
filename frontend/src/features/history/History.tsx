import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { Pin, RotateCcw } from "lucide-react";
import { useEffect, useState } from "react";
import { toast } from "sonner";
import { errorMessage } from "@/api/client";
import { fetchVersions, labelVersion, restoreVersion } from "@/api/routes";
import type { LoopVersion } from "@/api/types";
import { useOpenLoop, useSync } from "@/state/document/context";
import { Ago } from "@/ui/Ago";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { CONTROL } from "@/ui/control";
import { Failed, Loading } from "@/ui/States";
import { VersionChanges } from "./VersionChanges";

interface HistoryProps {
  loopId: string;
  onRestored: () => void;
}

/** Versions on the left; on the right what changed since the chosen one, its name and the way back to it. */
export function History({ loopId, onRestored }: HistoryProps) {
  const { sync } = useOpenLoop();
  const revision = useSync((state) => state.revision);
  const client = useQueryClient();
  const versions = useVersions(loopId, revision);
  const [chosenNumber, choose] = useState<number | null>(null);

  if (versions.isPending) return <Loading label="Loading the history" rows={6} />;
  if (versions.isError)
    return <Failed title="The history could not be loaded" error={versions.error} />;
  const all = versions.data.pages.flatMap((page) => page.items);
  const newest = all[0];
  const chosen = all.find((one) => one.version === chosenNumber) ?? all[1] ?? newest;
  if (!newest || !chosen) return null;

  const attempt = async (work: () => Promise<unknown>) => {
    try {
      await work();
      await client.invalidateQueries({ queryKey: ["versions", loopId] });
    } catch (error) {
      toast.error(errorMessage(error));
    }
  };
  const restore = () =>
    attempt(async () => {
      const loop = await restoreVersion(loopId, chosen.version, revision);
      sync?.adopt(loop, `Restore version ${chosen.version}`);
      toast.success(`Version ${chosen.version} is back. Undo brings back what was there.`);
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

const PAGE = 50;

/** Versions of a loop, the newest first, page by page. */
function useVersions(loopId: string, revision: string) {
  return useInfiniteQuery({
    queryKey: ["versions", loopId, revision],
    queryFn: ({ pageParam }) => fetchVersions(loopId, pageParam, PAGE),
    initialPageParam: null as number | null,
    getNextPageParam: ({ items }) => (items.length < PAGE ? null : (items.at(-1)?.version ?? null)),
    staleTime: 0,
  });
}

interface VersionLabelProps {
  version: LoopVersion;
  onLabel: (label: string | null) => void;
}

/** What a person calls a version; one that is called something stays for good. */
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
          {version.runs > 0 ? <Badge tone="accent">{runsText(version)}</Badge> : null}
          {isNewest ? <Badge>now</Badge> : null}
        </span>
      </button>
    </li>
  );
}

/** What a version of a loop is called in the history. */
function versionTitle({ label, reason, restored_from }: LoopVersion): string {
  if (label) return label;
  if (reason === "created") return "Created";
  return reason === "restored" ? `Restored from version ${restored_from}` : "Edited";
}

function runsText({ runs }: LoopVersion): string {
  return runs === 1 ? "1 run" : `${runs} runs`;
}
