import { useOpenLoop } from "@/document/context";
import { ChangedSince } from "@/features/runs/ChangedSince";
import { RunMenu } from "@/features/runs/RunMenu";
import { RunStrip } from "@/features/strip/RunStrip";

/** The runs of the open loop, each with what can be done with it. */
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
