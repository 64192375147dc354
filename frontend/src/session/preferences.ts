/** What this user likes, kept in this browser: theme, level of detail, panels. Never part of a loop. */
import { create } from "zustand";
import { persist } from "zustand/middleware";

export type Theme = "system" | "light" | "dark";
export type DockTab = "schedule" | "problems" | "memory" | "yaml";
export type RunTab = "charts" | "timeline" | "samples" | "log" | "schedule" | "yaml";

export interface Preferences {
  theme: Theme;
  level: string;
  isPaletteOpen: boolean;
  isInspectorOpen: boolean;
  isDockOpen: boolean;
  dockTab: DockTab;
  dockHeights: Record<DockTab, number>;
  runTab: RunTab;
  runDockHeight: number;
  inspectorWidth: number;
  hasMinimap: boolean;
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
      dockHeights: { schedule: 204, problems: 204, memory: 248, yaml: 380 },
      runTab: "charts",
      runDockHeight: 360,
      inspectorWidth: 360,
      hasMinimap: false,
      snapsToGrid: true,
      lastLoop: null,
      smoothing: 0,
      set: (change) => set(change),
    }),
    { name: "coloop.preferences", version: 2 },
  ),
);
