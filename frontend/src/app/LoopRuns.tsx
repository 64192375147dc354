import { ChangedSince } from "@/features/runs/list/ChangedSince";
import { RunMenu } from "@/features/runs/list/RunMenu";
import { RunStrip } from "@/features/runs/list/RunStrip";
import { useOpenLoop } from "@/state/document/context";

export function LoopRuns() {
  const { loopId } = useOpenLoop();
  if (loopId === null) return null;
  return (
    <RunStrip
      loopId={loopId}
      menu={(run, other) => <RunMenu run={run} other={other} />}
      changed={(run) => <ChangedSince run={run} label="changed since" />}
    />
  );
}
