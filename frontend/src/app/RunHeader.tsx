import { Download } from "lucide-react";
import { ChangedSince } from "@/features/runs/list/ChangedSince";
import { RunStateChip } from "@/features/runs/list/RunStateChip";
import { ConnectionChip } from "@/features/runs/live/ConnectionChip";
import { RunActions } from "@/features/runs/live/RunActions";
import type { Replay } from "@/features/runs/live/useReplay";
import { useLoopChanges } from "@/features/runs/start/ForkChanges";
import { download } from "@/lib/download";
import { useLive } from "@/live/hooks";
import { useOpenLoop } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { classes } from "@/ui/classes";
import { Segmented } from "@/ui/Segmented";
import { Brand } from "./head/Brand";
import { PageNav } from "./head/PageNav";
import { ThemeMenu } from "./head/ThemeMenu";

interface RunHeaderProps {
  name: string;
  onResumed: () => void;
  replay: Replay;
}

/** Which run it is, how it stands, and what can be done with it. */
export function RunHeader({ name, onResumed, replay }: RunHeaderProps) {
  const { store } = useOpenLoop();
  const state = useLive("status", (live) => live.run?.state ?? live.state.state, null);
  const attempt = useLive(
    "status",
    (live) => Math.max(live.run?.attempt ?? 1, live.state.attempt),
    1,
  );
  return (
    <header className="flex h-12 shrink-0 items-center gap-2 border-line border-b bg-surface px-3">
      <Brand />
      <PageNav />
      <span className="mx-1 h-5 w-px bg-line" />
      <h1
        className={classes(
          "max-w-80 truncate font-semibold text-sm",
          name.length > 8 ? "min-w-14" : "shrink-0",
        )}
        title={name}
      >
        {name}
      </h1>
      <RunStateChip state={state} />
      {attempt > 1 ? <span className="text-muted text-xs">attempt {attempt}</span> : null}
      <RunChanged />
      <ConnectionChip />
      <span className="flex-1" />
      <ReplaySwitch replay={replay} />
      <Button
        icon={<Download size={14} />}
        className="max-xl:hidden"
        onClick={() => download(`${name}.yaml`, store.getState().text)}
      >
        Export
      </Button>
      <RunActions onResumed={onResumed} />
      <ThemeMenu />
    </header>
  );
}

/** On a run: how much its loop was changed since; nothing where it is the same, or gone. */
function RunChanged() {
  const run = useLive("status", (live) => live.run, null);
  const { data } = useLoopChanges(run?.id ?? "", run?.loop_id ?? null, run !== null);
  const count = data?.changes.length ?? 0;
  if (!run || count === 0) return null;
  return <ChangedSince run={run} label={`changed since: ${count}`} />;
}

/** The present of the run, or its past. */
function ReplaySwitch({ replay }: { replay: Replay }) {
  const steps = useLive("gauges", (live) => live.run?.step ?? live.state.step ?? 0, 0);
  if (steps === 0) return null;
  return (
    <Segmented
      label="Moment"
      value={replay.isOn ? "replay" : "live"}
      options={[
        { value: "live", label: "Live", title: "The run as it is now" },
        { value: "replay", label: "Replay", title: "The run as it was at an earlier moment" },
      ]}
      onChange={(value) => (value === "replay" ? replay.start() : replay.stop())}
    />
  );
}
