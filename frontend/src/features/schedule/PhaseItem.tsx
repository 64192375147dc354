import type { JsonObject } from "@/api/types";
import { isGroup, type PhasePath } from "@/document/phases";
import { usePhaseProgress } from "@/live/usePhaseProgress";
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
