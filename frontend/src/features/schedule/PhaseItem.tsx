import type { JsonObject } from "@/api/types";
import { isGroup, type PhasePath } from "@/document/phases";
import { useLive } from "@/live/hooks";
import { PhaseCard } from "./PhaseCard";
import { PhaseGroup } from "./PhaseGroup";

interface PhaseItemProps {
  phase: JsonObject;
  at: PhasePath;
  isLast: boolean;
}

/** A phase or a group of them. */
export function PhaseItem({ phase, at, isLast }: PhaseItemProps) {
  const progress = usePhaseProgress(typeof phase.name === "string" ? phase.name : null);
  if (isGroup(phase)) return <PhaseGroup phase={phase} at={at} />;
  return <PhaseCard phase={phase} at={at} isLast={isLast} progress={progress} />;
}

/** How far the running phase is, for the card of that phase; null for all others. */
function usePhaseProgress(name: string | null): number | null {
  return useLive(
    "gauges",
    (live) => {
      const gauges = live.state.gauges;
      if (name === null || gauges?.phase !== name || live.connection === "ended") return null;
      const { phase_step: step, phase_steps: steps } = gauges;
      return typeof step === "number" && typeof steps === "number" && steps > 0
        ? Math.round(Math.min(1, step / steps) * 100) / 100
        : null;
    },
    null,
  );
}
