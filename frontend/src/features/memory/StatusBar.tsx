import { Flame, Gauge } from "lucide-react";
import type { Estimate } from "@/api/types";
import { useSync } from "@/document/context";
import { type GpuGroup, groupGpus, groupName } from "@/lib/estimate";
import { formatBytes, formatSeconds } from "@/lib/format";
import { usePreferences } from "@/session/preferences";
import { Tooltip } from "@/ui/Tooltip";
import { MemoryBar } from "./MemoryBar";

const SHOWN_GROUPS = 3;

/** The foot of the editor: memory of each GPU and the predicted step, always in view. */
export function StatusBar() {
  const estimate = useSync((state) => state.check?.estimate ?? null);
  const status = useSync((state) => state.checkStatus);
  const set = usePreferences((state) => state.set);
  const open = () => set({ isDockOpen: true, dockTab: "memory" });
  return (
    <footer
      data-tour="memory"
      className="flex h-8 shrink-0 items-center gap-4 border-line border-t bg-surface px-3 text-muted text-xs"
    >
      {estimate ? (
        <Bars estimate={estimate} onOpen={open} />
      ) : (
        <span>
          {status === "offline" ? "No estimate: the server does not answer" : "No estimate yet"}
        </span>
      )}
      <span className="flex-1" />
      {estimate && estimate.step_seconds !== null ? (
        <button
          type="button"
          className="flex min-w-0 items-center gap-3 rounded-1 px-1 hover:bg-hover"
          onClick={open}
        >
          <span className="flex items-center gap-1 whitespace-nowrap">
            <Gauge size={13} aria-hidden="true" /> step ≈ {formatSeconds(estimate.step_seconds)}
          </span>
          {estimate.bottleneck ? (
            <span
              className="flex min-w-0 items-center gap-1 text-warning"
              title="The stage that is predicted to take longest"
            >
              <Flame size={13} className="shrink-0" aria-hidden="true" />
              <span className="truncate">{estimate.bottleneck}</span>
            </span>
          ) : null}
        </button>
      ) : null}
    </footer>
  );
}

function Bars({ estimate, onOpen }: { estimate: Estimate; onOpen: () => void }) {
  const groups = groupGpus(estimate);
  return (
    <>
      {groups.slice(0, SHOWN_GROUPS).map((group) => (
        <Bar key={group.key} group={group} onOpen={onOpen} />
      ))}
      {groups.length > SHOWN_GROUPS ? (
        <button type="button" className="hover:underline" onClick={onOpen}>
          and {groups.length - SHOWN_GROUPS} more
        </button>
      ) : null}
    </>
  );
}

function Bar({ group, onOpen }: { group: GpuGroup; onOpen: () => void }) {
  const { gpu } = group;
  return (
    <Tooltip
      text={`Memory of ${groupName(group)}: worst in ${gpu.peak_stage || "no stage"}`}
      side="top"
    >
      <button
        type="button"
        className="flex items-center gap-2 rounded-1 px-1 hover:bg-hover"
        onClick={onOpen}
      >
        <span className="whitespace-nowrap">{groupName(group)}</span>
        <span className="block w-28">
          <MemoryBar gpu={gpu} stage={gpu.peak_stage} height={10} />
        </span>
        <span className={`tabular whitespace-nowrap ${gpu.fits ? "" : "font-medium text-error"}`}>
          {formatBytes(gpu.peak_bytes)} / {formatBytes(gpu.usable_bytes)}
        </span>
      </button>
    </Tooltip>
  );
}
