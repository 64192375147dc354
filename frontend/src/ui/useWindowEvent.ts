import { useEffect, useEffectEvent } from "react";

/** Listens on the window as long as the component is there. */
export function useWindowEvent<T extends keyof WindowEventMap>(
  type: T,
  listener: (event: WindowEventMap[T]) => void,
  { capture = false } = {},
): void {
  const listen = useEffectEvent(listener);
  useEffect(() => {
    const leave = new AbortController();
    window.addEventListener(type, (event) => listen(event), { capture, signal: leave.signal });
    return () => leave.abort();
  }, [type, capture]);
}
