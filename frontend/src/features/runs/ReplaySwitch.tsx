import { useLive } from "@/live/hooks";
import { Segmented } from "@/ui/Segmented";
import type { Replay } from "./useReplay";

/** The present of the run, or its past. */
export function ReplaySwitch({ replay }: { replay: Replay }) {
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
