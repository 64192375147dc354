import { useSyncExternalStore } from "react";

interface Brought<T> {
  part: T | null;
  /** The last fetch came to nothing; `bring` makes another. */
  hasFailed: boolean;
}

export interface Loadable<T> {
  bring: () => Promise<void>;
  get: () => Brought<T>;
  subscribe: (listener: () => void) => () => void;
}

/** A part that comes after the page is drawn: null until it is there, and then there at once for all. */
export function loadable<T>(load: () => Promise<T>): Loadable<T> {
  let brought: Brought<T> = { part: null, hasFailed: false };
  let loading: Promise<void> | null = null;
  const listeners = new Set<() => void>();

  const set = (next: Brought<T>) => {
    brought = next;
    for (const listener of listeners) listener();
  };
  const fetchPart = async () => {
    if (brought.hasFailed) set({ part: null, hasFailed: false });
    try {
      set({ part: await load(), hasFailed: false });
    } catch {
      loading = null;
      set({ part: null, hasFailed: true });
    }
  };
  const bring = (): Promise<void> => {
    loading ??= fetchPart();
    return loading;
  };
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return { bring, get: () => brought, subscribe };
}

export function usePart<T>({ get, subscribe }: Loadable<T>): Brought<T> {
  return useSyncExternalStore(subscribe, get);
}
