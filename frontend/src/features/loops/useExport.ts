import { useMemo } from "react";
import { toast } from "sonner";
import { errorMessage } from "@/api/client";
import { useOpenLoop } from "@/document/context";
import { download } from "@/lib/download";
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
          const { makeLoopPng } = await import("./loopPng");
          return makeLoopPng(await text());
        }),
    };
  }, [store, text]);
}
