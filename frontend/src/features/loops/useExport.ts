import { useMemo } from "react";
import { toast } from "sonner";
import { errorMessage } from "@/api/client";
import { useOpenLoop } from "@/document/context";
import { download } from "@/lib/download";
import { useSelection } from "@/session/selection";
import { useLoopText } from "./useLoopText";

interface Export {
  exportYaml: () => Promise<void>;
  /** A picture of the graph, with the YAML inside. */
  exportPng: () => Promise<void>;
}

/** Downloads the loop as the user sees it. */
export function useExport(): Export {
  const { store } = useOpenLoop();
  const text = useLoopText();
  return useMemo(() => {
    const attempt = async (ending: string, make: () => Promise<string | Uint8Array>) => {
      try {
        download(`${store.getState().document.name}.${ending}`, await make());
      } catch (error) {
        toast.error(`The loop could not be exported. ${errorMessage(error)}`);
      }
    };
    return {
      exportYaml: () => attempt("yaml", text),
      exportPng: () =>
        attempt("png", async () => {
          const [yaml, { makeLoopPng }] = await Promise.all([text(), import("./loopPng")]);
          return withoutSelection(() => makeLoopPng(yaml));
        }),
    };
  }, [store, text]);
}

/** What is selected is drawn otherwise, which belongs in no picture. */
async function withoutSelection<T>(work: () => Promise<T>): Promise<T> {
  const { nodes, edges, phase, entry, select, clear } = useSelection.getState();
  clear();
  // The page is drawn anew in the next frame, and is to be read after that.
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  try {
    return await work();
  } finally {
    select({ nodes, edges, phase, entry });
  }
}
