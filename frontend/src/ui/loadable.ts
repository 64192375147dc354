import { useEffect, useSyncExternalStore } from "react";

export interface Loadable<T> {
  bring: () => Promise<void>;
  get: () => T | null;
  subscribe: (listener: () => void) => () => void;
}

/** A part that comes right after the page is drawn: null until it is there, and then there at once for all. */
export function loadable<T>(load: () => Promise<T>): Loadable<T> {
  let part: T | null = null;
  let loading: Promise<void> | null = null;
  const listeners = new Set<() => void>();

  const bring = (): Promise<void> => {
    loading ??= load().then(
      (loaded) => {
        part = loaded;
        for (const listener of listeners) listener();
      },
      () => {
        loading = null;
      },
    );
    return loading;
  };
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  const get = () => part;
  return { bring, get, subscribe };
}

export function usePart<T>({ bring, get, subscribe }: Loadable<T>): T | null {
  useEffect(() => void bring(), [bring]);
  return useSyncExternalStore(subscribe, get);
}
