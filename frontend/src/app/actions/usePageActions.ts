import { useMemo } from "react";
import { useLocation } from "wouter";
import type { Action } from "@/session/actions";
import { useDialogs } from "@/session/dialogs";

/** Help, and the way to other pages. */
export function usePageActions(): Action[] {
  const [, navigate] = useLocation();
  return useMemo(
    (): Action[] => [
      {
        id: "commands",
        label: "All commands",
        keys: ["mod+k"],
        scope: "always",
        section: "Help",
        run: () => useDialogs.getState().show("commands"),
      },
      {
        id: "shortcuts",
        label: "Keyboard shortcuts",
        keys: ["?"],
        section: "Help",
        run: () => useDialogs.getState().show("shortcuts"),
      },
      { id: "runs", label: "Go to runs", keys: [], section: "Go to", run: () => navigate("/runs") },
      {
        id: "loops",
        label: "Go to loops",
        keys: [],
        section: "Go to",
        run: () => navigate("/loops"),
      },
    ],
    [navigate],
  );
}
