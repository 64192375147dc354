import { type ReactNode, Suspense } from "react";
import type { PanelId } from "@/session/preferences";
import { Loading } from "@/ui/States";
import { TabList } from "@/ui/TabList";
import { PANELS, type Page, panelsOf } from "./panels";

interface DockProps {
  page: Page;
  label: string;
  value: PanelId;
  onChange: (panel: PanelId) => void;
  /** Buttons at the end of the tabs. */
  children?: ReactNode;
}

/** The panels below the graph, one at a time. */
export function Dock({ page, label, value, onChange, children }: DockProps) {
  const panels = panelsOf(page);
  const { Body } = PANELS[value];
  return (
    <div className="flex h-full flex-col">
      <div className="flex shrink-0 items-center border-line border-b px-3">
        <TabList
          label={label}
          value={value}
          onChange={onChange}
          tabs={panels.map(([id, panel]) => ({
            value: id,
            label: panel.label,
            ...(panel.Note ? { note: <panel.Note /> } : {}),
          }))}
        />
        <span className="flex-1" />
        {children}
      </div>
      <div
        id={`panel-${value}`}
        role="tabpanel"
        aria-labelledby={`tab-${value}`}
        className="min-h-0 flex-1"
      >
        <Suspense fallback={<Loading label={`Loading ${PANELS[value].label.toLowerCase()}`} />}>
          <Body />
        </Suspense>
      </div>
    </div>
  );
}
