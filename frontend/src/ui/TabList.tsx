import type { ReactNode } from "react";
import { classes } from "./classes";

export interface TabItem<V extends string> {
  value: V;
  label: string;
  note?: ReactNode;
}

interface TabListProps<V extends string> {
  label: string;
  tabs: readonly TabItem<V>[];
  value: V | null;
  onChange: (value: V) => void;
}

/** The names of panels; arrows move between them. The panel has the id `panel-<value>`. */
export function TabList<V extends string>({ label, tabs, value, onChange }: TabListProps<V>) {
  const step = (event: React.KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    const index = tabs.findIndex((tab) => tab.value === value);
    const next = tabs[(index + by + tabs.length) % tabs.length];
    if (!next) return;
    event.preventDefault();
    onChange(next.value);
    document.getElementById(`tab-${next.value}`)?.focus();
  };
  return (
    <div
      role="tablist"
      aria-label={label}
      className="flex h-9 items-stretch gap-1"
      onKeyDown={step}
    >
      {tabs.map((tab, index) => {
        const isChosen = tab.value === value;
        const isEntry = isChosen || (value === null && index === 0);
        return (
          <button
            key={tab.value}
            id={`tab-${tab.value}`}
            type="button"
            role="tab"
            aria-selected={isChosen}
            aria-controls={`panel-${tab.value}`}
            tabIndex={isEntry ? 0 : -1}
            onClick={() => onChange(tab.value)}
            className={classes(
              "flex items-center gap-1.5 border-b-2 px-2 text-sm -outline-offset-2",
              isChosen
                ? "border-accent font-medium text-text"
                : "border-transparent text-muted hover:text-text",
            )}
          >
            {tab.label}
            {tab.note}
          </button>
        );
      })}
    </div>
  );
}
