/** One registry of the panels below the graph: the docks of both pages, their tabs and the commands read it. */
import type { ComponentType } from "react";
import { toneOf } from "@/document/problems";
import { openAlerts, useLive } from "@/live/hooks";
import { useOpenLoop, useSync } from "@/state/document/context";
import type { PanelId } from "@/state/preferences";
import { Badge } from "@/ui/Badge";

export type Page = "loop" | "run";

export interface Panel {
  label: string;
  pages: readonly Page[];
  keys: string;
  Note?: ComponentType;
}

export const PANELS: Record<PanelId, Panel> = {
  samples: { label: "Samples", pages: ["run"], keys: "" },
  log: { label: "Log", pages: ["run"], keys: "", Note: AlertCount },
  schedule: { label: "Schedule", pages: ["loop", "run"], keys: "" },
  data: { label: "Data", pages: ["loop"], keys: "" },
  plan: { label: "Plan", pages: ["loop", "run"], keys: "" },
  problems: {
    label: "Problems",
    pages: ["loop"],
    keys: "mod+m",
    Note: ProblemCount,
  },
  memory: { label: "Memory and time", pages: ["loop"], keys: "" },
  models: { label: "Models", pages: ["loop"], keys: "" },
  yaml: { label: "YAML", pages: ["loop", "run"], keys: "y" },
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
