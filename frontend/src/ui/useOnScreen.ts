import { type RefObject, useEffect, useState } from "react";

/** Whether an element is in sight or as near to it as `margin`; with `once`, whether it ever was. */
export function useOnScreen(
  element: RefObject<Element | null>,
  margin: string,
  { once = false } = {},
): boolean {
  const [isOnScreen, setOnScreen] = useState(typeof IntersectionObserver === "undefined");
  const isSettled = once && isOnScreen;
  useEffect(() => {
    if (!element.current || isSettled) return;
    const observer = new IntersectionObserver(
      (entries) => setOnScreen(entries.at(-1)?.isIntersecting ?? false),
      { rootMargin: margin },
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element, margin, isSettled]);
  return isOnScreen;
}
