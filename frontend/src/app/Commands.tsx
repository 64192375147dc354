import { lazy, Suspense, useEffect } from "react";
import type { Action } from "@/session/actions";
import { useDialogs } from "@/session/dialogs";

const load = () => import("./CommandPalette");
const CommandPalette = lazy(() => load().then((module) => ({ default: module.CommandPalette })));

/** The command palette, fetched while the page is idle, so that it is there when its keys are pressed. */
export function Commands({ actions }: { actions: readonly Action[] }) {
  const isOpen = useDialogs((state) => state.open === "commands");
  useEffect(() => {
    const timer = setTimeout(() => void load(), 1000);
    return () => clearTimeout(timer);
  }, []);
  return <Suspense>{isOpen ? <CommandPalette actions={actions} /> : null}</Suspense>;
}
