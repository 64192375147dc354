import { ChartsPanel } from "@/features/charts/ChartsPanel";
import { SamplesPanel } from "@/features/samples/SamplesPanel";
import { SchedulePanel } from "@/features/schedule/SchedulePanel";
import { TimelinePanel } from "@/features/timeline/TimelinePanel";
import { YamlPanel } from "@/features/yaml/YamlPanel";
import { useLive } from "@/live/hooks";
import { type RunTab, usePreferences } from "@/session/preferences";
import { Badge } from "@/ui/Badge";
import { TabList } from "@/ui/TabList";
import { LogPanel } from "./LogPanel";

const TABS: { value: RunTab; label: string }[] = [
  { value: "charts", label: "Charts" },
  { value: "timeline", label: "Timeline" },
  { value: "samples", label: "Samples" },
  { value: "log", label: "Log" },
  { value: "schedule", label: "Schedule" },
  { value: "yaml", label: "YAML" },
];

/** What a run tells, panel by panel. */
export function RunDock() {
  const tab = usePreferences((state) => state.runTab);
  const set = usePreferences((state) => state.set);
  const alerts = useLive("lines", (live) => live.state.alerts, 0);
  const tabs = TABS.map((one) =>
    one.value === "log" && alerts > 0
      ? { ...one, note: <Badge tone="warning">{alerts}</Badge> }
      : one,
  );
  return (
    <div className="flex h-full flex-col">
      <div className="shrink-0 border-line border-b px-3">
        <TabList
          label="Panels of the run"
          tabs={tabs}
          value={tab}
          onChange={(runTab) => set({ runTab })}
        />
      </div>
      <div
        id={`panel-${tab}`}
        role="tabpanel"
        aria-labelledby={`tab-${tab}`}
        className="min-h-0 flex-1"
      >
        {tab === "charts" ? <ChartsPanel /> : null}
        {tab === "timeline" ? <TimelinePanel /> : null}
        {tab === "samples" ? <SamplesPanel /> : null}
        {tab === "log" ? <LogPanel /> : null}
        {tab === "schedule" ? <SchedulePanel /> : null}
        {tab === "yaml" ? <YamlPanel /> : null}
      </div>
    </div>
  );
}
