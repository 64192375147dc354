import { lazy, type ReactNode, Suspense, useState } from "react";
import type { PanelId } from "@/state/preferences";
import { PanelHeadContext } from "@/ui/PanelHead";
import { Loading } from "@/ui/States";
import { TabList } from "@/ui/TabList";
import { PANELS, type Page, panelsOf } from "./panels";

const PanelBody = lazy(() =>
  import("./PanelBody").then((module) => ({ default: module.PanelBody })),
);

interface DockProps {
  page: Page;
  label: string;
  value: PanelId;
  onChange: (panel: PanelId) => void;
  children?: ReactNode;
}

export function Dock({ page, label, value, onChange, children }: DockProps) {
  const panels = panelsOf(page);
  const [room, setRoom] = useState<HTMLElement | null>(null);
  return (
    <div className="flex h-full flex-col">
      <div className="flex shrink-0 flex-wrap items-center gap-x-4 border-line border-b px-3">
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
        <div
          ref={setRoom}
          className="flex min-w-0 flex-1 flex-wrap items-center gap-x-3 gap-y-1 py-0.5 text-muted text-xs max-xl:gap-x-2"
        />
        {children}
      </div>
      <div
        id={`panel-${value}`}
        role="tabpanel"
        aria-labelledby={`tab-${value}`}
        className="min-h-0 flex-1"
      >
        <Suspense fallback={<Loading label={`Loading ${PANELS[value].label.toLowerCase()}`} />}>
          <PanelHeadContext value={room}>
            <PanelBody panel={value} />
          </PanelHeadContext>
        </Suspense>
      </div>
    </div>
  );
}
