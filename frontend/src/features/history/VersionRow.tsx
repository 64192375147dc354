import { Pin } from "lucide-react";
import type { LoopVersion } from "@/api/types";
import { Ago } from "@/ui/Ago";
import { Badge } from "@/ui/Badge";

interface VersionRowProps {
  version: LoopVersion;
  isNewest: boolean;
  isChosen: boolean;
  onChoose: () => void;
}

export function VersionRow({ version, isNewest, isChosen, onChoose }: VersionRowProps) {
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
