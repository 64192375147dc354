import { X } from "lucide-react";
import { useSync } from "@/document/context";
import { MemoryPanel } from "@/features/memory/MemoryPanel";
import { indexProblems } from "@/features/problems/group";
import { ProblemsPanel } from "@/features/problems/ProblemsPanel";
import { SchedulePanel } from "@/features/schedule/SchedulePanel";
import { YamlPanel } from "@/features/yaml/YamlPanel";
import { usePreferences } from "@/session/preferences";
import { Badge } from "@/ui/Badge";
import { IconButton } from "@/ui/IconButton";
import { TabList } from "@/ui/TabList";

/** The panels below the graph. */
export function EditorDock() {
  const tab = usePreferences((state) => state.dockTab);
  const set = usePreferences((state) => state.set);
  return (
    <div className="flex h-full flex-col">
      <div className="flex shrink-0 items-center border-line border-b px-3">
        <TabList
          label="Panels"
          value={tab}
          onChange={(dockTab) => set({ dockTab })}
          tabs={[
            { value: "schedule", label: "Schedule" },
            { value: "problems", label: "Problems", note: <ProblemCount /> },
            { value: "memory", label: "Memory and time" },
            { value: "yaml", label: "YAML" },
          ]}
        />
        <span className="flex-1" />
        <IconButton
          label="Hide the panel"
          keys="J"
          size="small"
          onClick={() => set({ isDockOpen: false })}
        >
          <X size={14} />
        </IconButton>
      </div>
      <div
        id={`panel-${tab}`}
        role="tabpanel"
        aria-labelledby={`tab-${tab}`}
        className="min-h-0 flex-1"
      >
        {tab === "schedule" ? <SchedulePanel /> : null}
        {tab === "problems" ? <ProblemsPanel /> : null}
        {tab === "memory" ? <MemoryPanel /> : null}
        {tab === "yaml" ? <YamlPanel /> : null}
      </div>
    </div>
  );
}

function ProblemCount() {
  const total = useSync((state) => indexProblems(state.check?.report.diagnostics).total);
  const count = total.error + total.warning + total.hint;
  if (count === 0) return null;
  return (
    <Badge tone={total.error > 0 ? "error" : total.warning > 0 ? "warning" : "neutral"}>
      {count}
    </Badge>
  );
}
