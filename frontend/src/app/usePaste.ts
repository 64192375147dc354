import { useEffect } from "react";
import { isTyping } from "@/session/actions";
import { useClipboard } from "@/session/useClipboard";

/** Nodes in a text that is pasted, from a tab or a text editor, become nodes of the loop. */
export function usePaste(): void {
  const { paste } = useClipboard();
  useEffect(() => {
    const take = (event: ClipboardEvent) => {
      if (isTyping(event.target)) return;
      event.preventDefault();
      void paste(event.clipboardData?.getData("text/plain") ?? "");
    };
    window.addEventListener("paste", take);
    return () => window.removeEventListener("paste", take);
  }, [paste]);
}
