/** What this user likes, kept in this browser: theme, level of detail, panels. Never part of a loop. */
import { create } from "zustand";
import { persist } from "zustand/middleware";

export type Theme = "system" | "light" | "dark";
/** The panels below the graph; `app/panels.tsx` says what each is and which page shows it. */
export type PanelId =
  | "samples"
  | "log"
  | "schedule"
  | "data"
  | "plan"
  | "problems"
  | "memory"
  | "models"
  | "yaml";

const DEFAULTS = {
  theme: "system" as Theme,
  level: "simple",
  /** Whether the list of nodes stays open beside the graph, or opens from its rail; null: nobody said. */
  isPalettePinned: null as boolean | null,
  isInspectorOpen: true,
  isDockOpen: false,
  dockTab: "schedule" as PanelId,
  dockHeights: { memory: 248, plan: 300, yaml: 380, data: 360, models: 360 } as Partial<
    Record<PanelId, number>
  >,
  runTab: "samples" as PanelId,
  /** Zero, as for the charts' width: a share of the window. */
  runDockHeight: 0,
  inspectorWidth: 360,
  hasMinimap: false,
  /** Shortcuts of one letter or sign, without Ctrl or ⌘. */
  hasSingleKeys: true,
  snapsToGrid: true,
  lastLoop: null as string | null,
  smoothing: 0.6,
  samplesView: "byPrompt" as "byPrompt" | "table",
  pinnedCharts: [] as readonly string[],
  runChartsWidth: 0,
  runTimelineHeight: 112,
  closedAbouts: [] as readonly string[],
  wasTourOffered: false,
};

type Preferences = typeof DEFAULTS;

export const usePreferences = create<Preferences>()(
  persist(() => DEFAULTS, {
    name: "coloop.preferences",
    version: 5,
    // What a run shows was arranged otherwise before.
    migrate: (before) => {
      const { runTab, runDockHeight, runTimelineHeight } = DEFAULTS;
      return { ...(before as object), runTab, runDockHeight, runTimelineHeight };
    },
  }),
);

export function setPreferences(change: Partial<Preferences>): void {
  usePreferences.setState(change);
}

/** Whether the list of nodes lies open over the graph, in this tab. To keep it open is a preference. */
interface PaletteState {
  isOpen: boolean;
  /** Asked for by its key or its button: it takes the focus, and stays until it is left or asked for again. */
  isCalled: boolean;
  peek: () => void;
  close: () => void;
  toggle: () => void;
}

const CLOSED = { isOpen: false, isCalled: false };

export const usePalette = create<PaletteState>()((set, get) => ({
  ...CLOSED,
  peek: () => {
    if (!get().isOpen) set({ isOpen: true, isCalled: false });
  },
  close: () => set(CLOSED),
  toggle: () => set(get().isCalled ? CLOSED : { isOpen: true, isCalled: true }),
}));

export function keepPalette(isPinned: boolean): void {
  setPreferences({ isPalettePinned: isPinned });
  usePalette.getState().close();
}

export const useTourState = create<{ step: number | null }>()(() => ({ step: null }));

export function goToStep(step: number | null): void {
  useTourState.setState({ step });
}

export function startTour(): void {
  setPreferences({ wasTourOffered: true });
  goToStep(0);
}
