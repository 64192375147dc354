import { useLocation } from "wouter";
import { PALETTE_WIDTH, RAIL_WIDTH } from "@/features/palette/widths";
import { usePreferences } from "@/state/preferences";
import { useSeconds } from "@/ui/useSeconds";
import { useSettingsWidth } from "./useWindow";

const EDITOR = /^\/(?:loops\/[^/]+)?$/;

export function AppSkeleton() {
  const [location] = useLocation();
  return (
    <div role="status" aria-label="Loading" className="flex h-full flex-col">
      <div className="flex h-12 shrink-0 items-center gap-3 border-line border-b bg-surface px-3">
        <div className="skeleton size-6" />
        <div className="skeleton h-4 w-40" />
        <div className="flex-1" />
        <div className="skeleton h-7 w-20" />
      </div>
      {EDITOR.test(location) ? <Panels /> : <Doing>Loading…</Doing>}
    </div>
  );
}

function Panels() {
  const { isPalettePinned, isInspectorOpen } = usePreferences();
  const width = useSettingsWidth();
  return (
    <>
      <div className="flex min-h-0 flex-1">
        <div
          className="shrink-0 overflow-hidden border-line border-r bg-surface p-3"
          style={{ width: isPalettePinned ? PALETTE_WIDTH : RAIL_WIDTH }}
        >
          {Array.from({ length: 8 }, (_, row) => (
            <div key={row} className="skeleton mb-3 h-5" />
          ))}
        </div>
        <Doing>
          Preparing nodes and presets. The first start of the server takes a few seconds.
        </Doing>
        {isInspectorOpen ? (
          <div className="shrink-0 border-line border-l bg-surface" style={{ width }} />
        ) : null}
      </div>
      <div className="h-[104px] shrink-0 border-line border-t bg-surface" />
      <div className="h-[78px] shrink-0 border-line border-t bg-surface" />
    </>
  );
}

function Doing({ children }: { children: string }) {
  const seconds = useSeconds();
  return (
    <p className="flex-1 self-center px-6 text-center text-muted text-sm">
      {seconds > 0 ? children : null}
    </p>
  );
}
