import { useCallback, useEffect, useRef, useState } from "react";
import { isAbort } from "@/api/client";
import type { LoopDocument } from "@/document/types";
import { useOpenLoop } from "./document/context";

export interface Preview<T> {
  found: T | null;
  asked: LoopDocument | null;
  error: unknown;
  isPending: boolean;
  ask: (question: (yaml: string, signal: AbortSignal) => Promise<T>) => void;
  cancel: () => void;
}

/** A question to the service about the open loop, which ends with the component that asks. */
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
    setState((known) => ({ ...known, isPending: false }));
  }, []);
  useEffect(() => () => asking.current?.abort(), []);

  const ask = useCallback<Preview<T>["ask"]>(
    (question) => {
      asking.current?.abort();
      const own = new AbortController();
      asking.current = own;
      setState((known) => ({ ...known, isPending: true }));
      const { document } = store.getState();
      const tell = (found: T | null, error: unknown) => {
        if (asking.current !== own) return;
        asking.current = null;
        setState((known) => ({
          found: found ?? known.found,
          asked: found ? document : known.asked,
          error,
          isPending: false,
        }));
      };
      void (async () => {
        try {
          await sync?.flush();
          const present = sync?.present() ?? null;
          if (present === null) throw new Error("The loop on the screen is invalid.");
          tell(await question(present.yaml, own.signal), null);
        } catch (error) {
          if (!isAbort(error)) tell(null, error);
        }
      })();
    },
    [sync, store],
  );
  return { ...state, ask, cancel };
}
