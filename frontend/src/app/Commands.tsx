import type { Action } from "@/session/actions";
import { useDialogs } from "@/session/dialogs";
import { CommandPalette } from "./CommandPalette";

export function Commands({ actions }: { actions: readonly Action[] }) {
  const isOpen = useDialogs((state) => state.open === "commands");
  return isOpen ? <CommandPalette actions={actions} /> : null;
}
