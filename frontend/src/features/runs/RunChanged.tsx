import { useLive } from "@/live/hooks";
import { ChangedSince } from "./ChangedSince";
import { useLoopChanges } from "./useLoopChanges";

/** On a run: how much its loop was changed since; nothing where it is the same, or gone. */
export function RunChanged() {
  const run = useLive("status", (live) => live.run, null);
  const { data } = useLoopChanges(run?.id ?? "", run?.loop_id ?? null, run !== null);
  const count = data?.changes.length ?? 0;
  if (!run || count === 0) return null;
  return <ChangedSince run={run} label={`changed since: ${count}`} />;
}
