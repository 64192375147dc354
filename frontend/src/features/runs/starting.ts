import { create } from "zustand";

/** Whether a run is being started right now; a second press changes nothing. */
export const useStarting = create<{ isStarting: boolean }>()(() => ({ isStarting: false }));
