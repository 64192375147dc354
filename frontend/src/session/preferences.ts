/** What this user likes, kept in this browser: theme, level of detail, panels. Never part of a loop. */
import { create } from "zustand";
import { persist } from "zustand/middleware";

export type Theme = "system" | "light" | "dark";
/** The panels below the graph; `app/panels.tsx` says what each is and which page shows it. */
export type PanelId =
  | "charts"
  | "timeline"
  | "samples"
  | "log"
  | "schedule"
  | "plan"
  | "problems"
  | "memory"
  | "yaml";

export interface Preferences {
  theme: Theme;
  level: string;
  isPaletteOpen: boolean;
  isInspectorOpen: boolean;
  isDockOpen: boolean;
  dockTab: PanelId;
  /** Of each panel of the composer whose height was chosen. */
  dockHeights: Partial<Record<PanelId, number>>;
  runTab: PanelId;
  runDockHeight: number;
  inspectorWidth: number;
  hasMinimap: boolean;
  /** Shortcuts of one letter or sign, without Ctrl or ⌘. */
  hasSingleKeys: boolean;
  snapsToGrid: boolean;
  lastLoop: string | null;
  smoothing: number;
  set: (change: Partial<Omit<Preferences, "set">>) => void;
}

export const usePreferences = create<Preferences>()(
  persist(
    (set) => ({
      theme: "system",
      level: "simple",
      isPaletteOpen: true,
      isInspectorOpen: true,
      isDockOpen: true,
      dockTab: "schedule",
      dockHeights: { memory: 248, plan: 300, yaml: 380 },
      runTab: "charts",
      runDockHeight: 360,
      inspectorWidth: 360,
      hasMinimap: false,
      hasSingleKeys: true,
      snapsToGrid: true,
      lastLoop: null,
      smoothing: 0,
      set: (change) => set(change),
    }),
    { name: "coloop.preferences", version: 2 },
  ),
);
