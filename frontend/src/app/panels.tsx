/** One registry of the panels below the graph: the docks of both pages, their tabs and the commands read it. */
import { type ComponentType, lazy } from "react";
import { useOpenLoop, useSync } from "@/document/context";
import { toneOf } from "@/document/problems";
import { openAlerts } from "@/live/acknowledged";
import { useLive } from "@/live/hooks";
import type { PanelId } from "@/session/preferences";
import { Badge } from "@/ui/Badge";
import { later } from "@/ui/later";

// The composer is not to wait for these.
const MemoryPanel = lazy(() =>
  import("@/features/memory/MemoryPanel").then((module) => ({ default: module.MemoryPanel })),
);
const PlanPanel = lazy(() =>
  import("@/features/plan/PlanPanel").then((module) => ({ default: module.PlanPanel })),
);
const fetchCharts = () =>
  import("@/features/charts/ChartsPanel").then((module) => ({ default: module.ChartsPanel }));
const fetchTimeline = () =>
  import("@/features/timeline/TimelinePanel").then((module) => ({ default: module.TimelinePanel }));
export const ChartsPanel = lazy(fetchCharts);
export const TimelinePanel = lazy(fetchTimeline);
const SamplesPanel = lazy(() =>
  import("@/features/samples/SamplesPanel").then((module) => ({ default: module.SamplesPanel })),
);
const LogPanel = lazy(() =>
  import("@/features/runs/LogPanel").then((module) => ({ default: module.LogPanel })),
);

const DatasetPanel = lazy(() =>
  import("@/features/dataset/DatasetPanel").then((module) => ({ default: module.DatasetPanel })),
);

const ProblemsPanel = later(() =>
  import("@/features/problems/ProblemsPanel").then((module) => module.ProblemsPanel),
);
const SchedulePanel = later(() =>
  import("@/features/schedule/SchedulePanel").then((module) => module.SchedulePanel),
);
const YamlPanel = later(() =>
  import("@/features/yaml/YamlPanel").then((module) => module.YamlPanel),
);

/** What a run shows besides its graph, on its way while the run itself is. It is asked for again where it is shown. */
export function fetchRunPanels(): void {
  for (const fetchPanel of [fetchCharts, fetchTimeline]) fetchPanel().catch(() => {});
}

export type Page = "loop" | "run";

export interface Panel {
  label: string;
  /** The pages that show it. */
  pages: readonly Page[];
  /** Shortcuts of the composer that open it. */
  keys: readonly string[];
  Body: ComponentType;
  /** A number beside the name on the tab. */
  Note?: ComponentType;
}

export const PANELS: Record<PanelId, Panel> = {
  samples: { label: "Samples", pages: ["run"], keys: [], Body: SamplesPanel },
  log: { label: "Log", pages: ["run"], keys: [], Body: LogPanel, Note: AlertCount },
  schedule: { label: "Schedule", pages: ["loop", "run"], keys: [], Body: SchedulePanel },
  data: { label: "Data", pages: ["loop"], keys: [], Body: DatasetPanel },
  plan: { label: "Plan", pages: ["loop", "run"], keys: [], Body: PlanPanel },
  problems: {
    label: "Problems",
    pages: ["loop"],
    keys: ["mod+m"],
    Body: ProblemsPanel,
    Note: ProblemCount,
  },
  memory: { label: "Memory and time", pages: ["loop"], keys: [], Body: MemoryPanel },
  yaml: { label: "YAML", pages: ["loop", "run"], keys: ["y"], Body: YamlPanel },
};

export function panelsOf(page: Page): [PanelId, Panel][] {
  const all = Object.entries(PANELS) as [PanelId, Panel][];
  return all.filter(([, panel]) => panel.pages.includes(page));
}

function ProblemCount() {
  const { catalog } = useOpenLoop();
  const found = useSync((state) => state.check?.report.diagnostics);
  if (!found?.length) return null;
  const tone = toneOf(catalog, found);
  return (
    <Badge tone={tone === "error" || tone === "warning" ? tone : "neutral"}>{found.length}</Badge>
  );
}

function AlertCount() {
  const alerts = useLive("lines", (live) => openAlerts(live).length, 0);
  return alerts > 0 ? <Badge tone="warning">{alerts}</Badge> : null;
}
