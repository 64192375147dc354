import type { ReactNode } from "react";
import { LiveContext, useLive, useLiveRun } from "@/live/hooks";
import type { LiveRun } from "@/live/LiveRun";
import { RecordContext } from "@/live/recordContext";
import type { Replay } from "./useReplay";

/** Below it the run is as it was at the moment that the replay shows. */
export function ReplayProvider({ replay, children }: { replay: Replay; children: ReactNode }) {
  const live = useLiveRun();
  const past = replay.player?.live ?? null;
  return (
    <LiveContext value={past ?? live}>
      <Recorded live={past ? live : null}>{children}</Recorded>
    </LiveContext>
  );
}

function Recorded({ live, children }: { live: LiveRun | null; children: ReactNode }) {
  const step = useLive("gauges", (run) => run.state.step ?? 0, 0);
  return <RecordContext value={live ? { live, step } : null}>{children}</RecordContext>;
}
