import { type ComponentType, type LazyExoticComponent, lazy, useEffect, useState } from "react";

type Load = () => Promise<unknown>;

let isStarted = false;
const waiting: Load[] = [];

/** A moment in which the page has nothing to do. */
export function whenIdle(work: () => void): () => void {
  if (typeof requestIdleCallback === "undefined") {
    const timer = setTimeout(work, 200);
    return () => clearTimeout(timer);
  }
  const asked = requestIdleCallback(work, { timeout: 1000 });
  return () => cancelIdleCallback(asked);
}

/** Fetches `load` once the page is drawn and stands idle. A fetch that fails is made again where its part is shown. */
export function fetchLater(load: Load): void {
  if (isStarted) whenIdle(() => void load().catch(() => {}));
  else waiting.push(load);
}

/** A part that the first sight of a page does without. It is there when it is first asked for. */
export function later<P extends object>(
  load: () => Promise<ComponentType<P>>,
): LazyExoticComponent<ComponentType<P>> {
  fetchLater(load);
  return lazy(() => load().then((part) => ({ default: part })));
}

/** Tells that the page is drawn: what waits is fetched. */
export function useDrawn(): void {
  useEffect(
    () =>
      whenIdle(() => {
        isStarted = true;
        for (const load of waiting.splice(0)) void load().catch(() => {});
      }),
    [],
  );
}

/** False at first, true from the first idle moment on. */
export function useIdle(): boolean {
  const [isIdle, setIdle] = useState(false);
  useEffect(() => whenIdle(() => setIdle(true)), []);
  return isIdle;
}
