import { type RefObject, useEffect } from "react";

/** While it is on, an element that something new above it pushes out of sight is scrolled back. */
export function useKeptInSight(element: RefObject<HTMLElement | null>, isOn: boolean): void {
  useEffect(() => {
    if (!isOn || !element.current || typeof IntersectionObserver === "undefined") return;
    const observer = new IntersectionObserver(
      ([entry]) => {
        if (entry && entry.intersectionRatio < 1) entry.target.scrollIntoView({ block: "nearest" });
      },
      { threshold: [0, 1] },
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element, isOn]);
}
