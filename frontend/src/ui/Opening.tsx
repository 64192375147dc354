import { type ReactNode, type RefObject, useEffect } from "react";
import { Floating } from "./Floating";
import { type Loadable, usePart } from "./loadable";

interface OpeningProps<T> {
  from: Loadable<T>;
  /** What was pressed: it keeps the focus until what opens takes it. */
  anchor: RefObject<HTMLElement | null>;
  onClose: () => void;
  children: (part: T) => ReactNode;
}

/** What opens by a press, as soon as it is there. Whoever goes elsewhere meanwhile is not called back. */
export function Opening<T>({ from, anchor, onClose, children }: OpeningProps<T>) {
  const { part, hasFailed } = usePart(from);
  useEffect(() => void from.bring(), [from]);
  return part ? (
    children(part)
  ) : (
    <Waiting anchor={anchor} hasFailed={hasFailed} onClose={onClose} />
  );
}

interface WaitingProps {
  anchor: RefObject<HTMLElement | null>;
  hasFailed: boolean;
  onClose: () => void;
}

function Waiting({ anchor, hasFailed, onClose }: WaitingProps) {
  const pressed = anchor.current;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && onClose();
    const onElsewhere = ({ target }: Event) => {
      if (target instanceof Node && !pressed?.contains(target)) onClose();
    };
    window.addEventListener("keydown", onKey, true);
    window.addEventListener("pointerdown", onElsewhere, true);
    window.addEventListener("focusin", onElsewhere, true);
    return () => {
      window.removeEventListener("keydown", onKey, true);
      window.removeEventListener("pointerdown", onElsewhere, true);
      window.removeEventListener("focusin", onElsewhere, true);
    };
  }, [pressed, onClose]);
  if (!pressed) return null;
  return (
    <Floating
      anchor={pressed}
      side="bottom"
      role={hasFailed ? "alert" : "status"}
      className={`pointer-events-none fixed z-50 w-max max-w-72 rounded-2 border border-line bg-raised px-3 py-2 text-xs shadow-3 ${hasFailed ? "text-error" : "animate-[overlay-in_120ms_ease-out_200ms_both] text-muted"}`}
    >
      {hasFailed
        ? "This could not be loaded: the server does not answer. Press again to try again."
        : "Loading…"}
    </Floating>
  );
}
