/** The guided tour: which step is shown, and that it is offered unasked once only. */
import { create } from "zustand";
import { usePreferences } from "./preferences";

interface TourState {
  /** Place of the step that is shown; null: no tour. */
  step: number | null;
  go: (step: number | null) => void;
}

export const useTourState = create<TourState>()((set) => ({
  step: null,
  go: (step) => set({ step }),
}));

export function startTour(): void {
  usePreferences.getState().set({ wasTourOffered: true });
  useTourState.getState().go(0);
}

export function useTour() {
  const wasOffered = usePreferences((state) => state.wasTourOffered);
  const set = usePreferences((state) => state.set);
  return {
    isOffered: !wasOffered,
    start: startTour,
    decline: () => set({ wasTourOffered: true }),
  };
}
