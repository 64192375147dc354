/** Whether the next drag over the canvas cuts edges; asked for by a command, or as long as Alt is held. */
import { create } from "zustand";

export const useKnife = create<{ isOn: boolean }>()(() => ({ isOn: false }));
