import { useEffect } from "react";
import { isTyping } from "@/session/actions";
import { useClipboard } from "@/session/useClipboard";

/** Pasted pieces of loops become nodes; any other text is left alone. */
export function usePaste(): void {
  const { paste } = useClipboard();
  useEffect(() => {
    const take = (event: ClipboardEvent) => {
      if (isTyping(event.target)) return;
      if (paste(event.clipboardData?.getData("text/plain") ?? "")) event.preventDefault();
    };
    window.addEventListener("paste", take);
    return () => window.removeEventListener("paste", take);
  }, [paste]);
}
