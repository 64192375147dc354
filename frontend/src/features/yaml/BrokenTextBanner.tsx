import { useOpenLoop, useSync } from "@/document/context";
import type { SyncState } from "@/document/sync/state";
import { usePreferences } from "@/session/preferences";
import { Button } from "@/ui/Button";

/** Over the graph while the text is not read: what is seen is the last good state. */
export function BrokenTextBanner() {
  const { sync } = useOpenLoop();
  const reason = useSync(lockReason);
  const set = usePreferences((state) => state.set);
  if (reason === null) return null;
  return (
    <div className="pointer-events-none absolute inset-0 bg-[color-mix(in_oklab,var(--canvas)_45%,transparent)]">
      <div
        role="status"
        className="pointer-events-auto mx-auto mt-3 flex w-fit items-center gap-3 rounded-2 border border-line bg-hover px-3 py-2 text-sm shadow-2"
      >
        {reason} The graph shows the last valid state.
        <Button size="small" onClick={() => set({ isDockOpen: true, dockTab: "yaml" })}>
          Show the text
        </Button>
        <Button size="small" onClick={() => sync?.discardText()}>
          Discard
        </Button>
      </div>
    </div>
  );
}

function lockReason({ brokenText, typedText, checkStatus }: SyncState): string | null {
  if (brokenText !== null) return "The text has errors.";
  return typedText !== null && checkStatus === "offline" ? "The text is not parsed yet." : null;
}
