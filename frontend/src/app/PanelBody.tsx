import type { ComponentType } from "react";
import { DatasetPanel } from "@/features/dataset/DatasetPanel";
import { MemoryPanel } from "@/features/hardware/MemoryPanel";
import { ModelsPanel } from "@/features/models/ModelsPanel";
import { PlanPanel } from "@/features/plan/PlanPanel";
import { ProblemsPanel } from "@/features/problems/ProblemsPanel";
import { LogPanel } from "@/features/runs/live/LogPanel";
import { SamplesPanel } from "@/features/samples/SamplesPanel";
import { SchedulePanel } from "@/features/schedule/SchedulePanel";
import { YamlPanel } from "@/features/yaml/YamlPanel";
import type { PanelId } from "@/state/preferences";

const BODIES: Record<PanelId, ComponentType> = {
  samples: SamplesPanel,
  log: LogPanel,
  schedule: SchedulePanel,
  data: DatasetPanel,
  plan: PlanPanel,
  problems: ProblemsPanel,
  memory: MemoryPanel,
  models: ModelsPanel,
  yaml: YamlPanel,
};

export function PanelBody({ panel }: { panel: PanelId }) {
  const Body = BODIES[panel];
  return <Body />;
}
