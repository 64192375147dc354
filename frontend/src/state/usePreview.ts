import { useCallback, useEffect, useRef, useState } from "react";
import { isAbort } from "@/api/client";
import type { LoopDocument } from "@/document/types";
import { useOpenLoop } from "./document/context";

export interface Preview<T> {
  found: T | null;
  /** The document for which `found` is the answer. */
  asked: LoopDocument | null;
  error: unknown;
  isPending: boolean;
  ask: (question: (yaml: string, signal: AbortSignal) => Promise<T>) => void;
  cancel: () => void;
}

/** A request to the server about the open loop, aborted when the component that made it unmounts. */
export function usePreview<T>(): Preview<T> {
  const { sync, store } = useOpenLoop();
  const [state, setState] = useState<Omit<Preview<T>, "ask" | "cancel">>({
    found: null,
    asked: null,
    error: null,
    isPending: false,
  });
  const asking = useRef<AbortController | null>(null);

  const cancel = useCallback(() => {
    asking.current?.abort();
    asking.current = null;
    setState((previous) => ({ ...previous, isPending: false }));
  }, []);
  useEffect(() => () => asking.current?.abort(), []);

  const ask = useCallback<Preview<T>["ask"]>(
    (question) => {
      asking.current?.abort();
      const controller = new AbortController();
      asking.current = controller;
      setState((previous) => ({ ...previous, isPending: true }));
      const { document } = store.getState();
      const settle = (answer: T | null, error: unknown) => {
        if (asking.current !== controller) return;
        asking.current = null;
        setState((previous) => ({
          found: answer ?? previous.found,
          asked: answer ? document : previous.asked,
          error,
          isPending: false,
        }));
      };
      void (async () => {
        try {
          await sync?.flush();
          const present = sync?.present() ?? null;
          if (present === null) throw new Error("The loop on the screen is invalid.");
          settle(await question(present.yaml, controller.signal), null);
        } catch (error) {
          if (!isAbort(error)) settle(null, error);
        }
      })();
    },
    [sync, store],
  );
  return { ...state, ask, cancel };
}
