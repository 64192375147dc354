import { useEffect, useRef, useState } from "react";
import { isAbort } from "@/api/client";
import type { LoopDocument } from "@/document/types";
import { useOpenLoop } from "./document/context";

interface Previewed<T> {
  found: T | null;
  /** The document for which `found` is the answer. */
  asked: LoopDocument | null;
  error: unknown;
  isPending: boolean;
}

export interface Preview<T> extends Previewed<T> {
  ask: (question: (yaml: string, signal: AbortSignal) => Promise<T>) => Promise<void>;
  cancel: () => void;
}

const NOTHING: Previewed<never> = { found: null, asked: null, error: null, isPending: false };

/** A request to the server about the open loop, aborted when the component that made it unmounts. */
export function usePreview<T>(): Preview<T> {
  const { sync, store } = useOpenLoop();
  const [state, setState] = useState<Previewed<T>>(NOTHING);
  const asking = useRef<AbortController | null>(null);
  const change = (now: Partial<Previewed<T>>) => setState((before) => ({ ...before, ...now }));

  const stop = () => {
    asking.current?.abort();
    asking.current = null;
  };
  const cancel = () => {
    stop();
    change({ isPending: false });
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the component goes
  useEffect(() => stop, []);

  const ask: Preview<T>["ask"] = async (question) => {
    stop();
    const controller = new AbortController();
    asking.current = controller;
    change({ isPending: true });
    const { document } = store.getState();
    const settle = (now: Partial<Previewed<T>>) => {
      if (asking.current === controller) change({ ...now, isPending: false });
    };
    try {
      await sync?.flush();
      const present = sync?.present() ?? null;
      if (present === null) throw new Error("The loop on the screen is invalid.");
      const found = await question(present.yaml, controller.signal);
      settle({ found, asked: document, error: null });
    } catch (error) {
      if (!isAbort(error)) settle({ error });
    }
  };
  return { ...state, ask, cancel };
}
