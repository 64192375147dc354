import { AboutLoop } from "@/features/about/AboutLoop";
import { useAbout } from "@/features/about/useAbout";
import { usePreferences } from "@/session/preferences";
import { useSelection } from "@/session/selection";
import { Resizer } from "@/ui/Resizer";
import { Settings, SettingsOutline } from "./Settings";
import { useSettingsWidth } from "./useNarrow";

/** Settings of what is selected, on the right, as wide as one likes. */
export function SettingsPane() {
  const width = usePreferences((state) => state.inspectorWidth);
  const set = usePreferences((state) => state.set);
  const shown = useSettingsWidth();
  return (
    <aside
      aria-label="Settings"
      className="relative flex shrink-0 flex-col border-line border-l"
      style={{ width: shown }}
    >
      <Resizer
        label="Width of the settings"
        grows="left"
        size={width}
        min={280}
        max={560}
        onResize={(size) => set({ inspectorWidth: size })}
      />
      <Inside />
    </aside>
  );
}

/** Above the settings of the loop: what it teaches, until it is closed. They wait for each other. */
function Inside() {
  const { isOpen, isKnown } = useAbout();
  const isLoop = useSelection(
    ({ nodes, edges, phase, entry }) => nodes.length + edges.length === 0 && !phase && !entry,
  );
  if (isLoop && !isKnown)
    return (
      <div key="outline" className="min-h-0 flex-1">
        <SettingsOutline />
      </div>
    );
  return (
    <>
      {isOpen && isLoop ? <AboutLoop /> : null}
      <div className="min-h-0 flex-1">
        <Settings />
      </div>
    </>
  );
}
