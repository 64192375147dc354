import { type ReactNode, useState } from "react";
import { useDialogs } from "@/state/dialogs";

type DialogName = Exclude<ReturnType<typeof useDialogs.getState>["open"], null>;

export function DialogOnce({ dialog, children }: { dialog: DialogName; children: ReactNode }) {
  const isOpen = useDialogs((state) => state.open === dialog);
  return <MountOnce when={isOpen}>{children}</MountOnce>;
}

/** What is not there before it is wanted, and stays. */
export function MountOnce({ when, children }: { when: boolean; children: ReactNode }) {
  const [isThere, setThere] = useState(when);
  if (when && !isThere) setThere(true);
  return when || isThere ? children : null;
}
