import { type FocusEvent, type PointerEvent, useEffect, useRef, useState } from "react";

/** Milliseconds of rest before a tip is shown, unless one was shown just before; and to move onto it. */
const REST = 350;
const JUST_BEFORE = 200;
const MOVING_OVER = 120;

let hideShown: (() => void) | null = null;
let lastHidden = Number.NEGATIVE_INFINITY;

/** What a tip is shown at, if it is: after a rest of the pointer, and at once on the way of the keyboard. */
export function useTip() {
  const [anchor, setAnchor] = useState<Element | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const isPressed = useRef(false);

  const hide = () => {
    clearTimeout(timer.current);
    setAnchor(null);
  };
  const show = (element: Element) => {
    clearTimeout(timer.current);
    hideShown?.();
    hideShown = hide;
    setAnchor(element);
  };
  const wait = (work: () => void, milliseconds: number) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(work, milliseconds);
  };
  const leave = () => wait(hide, MOVING_OVER);

  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    if (!anchor) return;
    const close = () => setAnchor(null);
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && close();
    const onScroll = ({ target }: Event) =>
      target instanceof Node && target.contains(anchor) && close();
    window.addEventListener("keydown", onKey, true);
    window.addEventListener("scroll", onScroll, true);
    window.addEventListener("wheel", close, { passive: true });
    return () => {
      lastHidden = performance.now();
      window.removeEventListener("keydown", onKey, true);
      window.removeEventListener("scroll", onScroll, true);
      window.removeEventListener("wheel", close);
    };
  }, [anchor]);

  return {
    anchor,
    ofAnchor: {
      onPointerEnter: ({ currentTarget, pointerType }: PointerEvent) => {
        if (pointerType === "touch" || isPressed.current) return;
        const isNext = performance.now() - lastHidden < JUST_BEFORE;
        wait(() => show(currentTarget), isNext ? 0 : REST);
      },
      onPointerLeave: () => {
        isPressed.current = false;
        leave();
      },
      onPointerDown: () => {
        isPressed.current = true;
        hide();
      },
      onFocus: ({ currentTarget, target }: FocusEvent) => {
        if (!isPressed.current && target.matches(":focus-visible")) show(currentTarget);
      },
      onBlur: hide,
      onClick: hide,
    },
    ofTip: { onPointerEnter: () => clearTimeout(timer.current), onPointerLeave: leave },
  };
}
