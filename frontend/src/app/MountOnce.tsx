import { type ComponentType, type ReactNode, useState } from "react";
import { useDialogs } from "@/state/dialogs";

type DialogName = Exclude<ReturnType<typeof useDialogs.getState>["open"], null>;

export function DialogOnce({ name, of: Dialog }: { name: DialogName; of: ComponentType }) {
  const isOpen = useDialogs((state) => state.open === name);
  return (
    <MountOnce when={isOpen}>
      <Dialog />
    </MountOnce>
  );
}

/** What is not there before it is wanted, and stays. */
export function MountOnce({ when, children }: { when: boolean; children: ReactNode }) {
  const [isThere, setThere] = useState(when);
  if (when && !isThere) setThere(true);
  return when || isThere ? children : null;
}
