import { lazy, Suspense } from "react";
import { useAbout } from "@/features/about/useAbout";
import { usePreferences } from "@/session/preferences";
import { useSelection } from "@/session/selection";
import { Resizer } from "@/ui/Resizer";
import { Settings } from "./Settings";
import { useNarrow } from "./useNarrow";

const AboutLoop = lazy(() =>
  import("@/features/about/AboutLoop").then((module) => ({ default: module.AboutLoop })),
);

const NARROW = 300;

/** Settings of what is selected, on the right, as wide as one likes. */
export function SettingsPane() {
  const width = usePreferences((state) => state.inspectorWidth);
  const set = usePreferences((state) => state.set);
  const isNarrow = useNarrow();
  return (
    <aside
      aria-label="Settings"
      className="relative flex shrink-0 flex-col border-line border-l"
      style={{ width: isNarrow ? Math.min(width, NARROW) : width }}
    >
      <Resizer
        label="Width of the settings"
        grows="left"
        size={width}
        min={280}
        max={560}
        onResize={(size) => set({ inspectorWidth: size })}
      />
      <AboutAbove />
      <div className="min-h-0 flex-1">
        <Settings />
      </div>
    </aside>
  );
}

/** Above the settings of the loop: what it teaches, until it is closed. */
function AboutAbove() {
  const { isOpen } = useAbout();
  const isLoop = useSelection(
    ({ nodes, edges, phase, entry }) => nodes.length + edges.length === 0 && !phase && !entry,
  );
  if (!isOpen || !isLoop) return null;
  return (
    <Suspense fallback={null}>
      <AboutLoop />
    </Suspense>
  );
}
