import { Download } from "lucide-react";
import { useOpenLoop } from "@/document/context";
import { ConnectionChip } from "@/features/runs/ConnectionChip";
import { ReplaySwitch } from "@/features/runs/ReplaySwitch";
import { RunActions } from "@/features/runs/RunActions";
import { RunChanged } from "@/features/runs/RunChanged";
import { RunStateChip } from "@/features/runs/RunStateChip";
import type { Replay } from "@/features/runs/useReplay";
import { download } from "@/lib/download";
import { useLive } from "@/live/hooks";
import { Button } from "@/ui/Button";
import { classes } from "@/ui/classes";
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
