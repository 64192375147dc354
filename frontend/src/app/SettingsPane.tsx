import { Inspector } from "@/features/inspector/Inspector";
import { usePreferences } from "@/session/preferences";
import { Resizer } from "@/ui/Resizer";
import { useNarrow } from "./useNarrow";

const NARROW = 300;

/** Settings of what is selected, on the right, as wide as one likes. */
export function SettingsPane() {
  const width = usePreferences((state) => state.inspectorWidth);
  const set = usePreferences((state) => state.set);
  const isNarrow = useNarrow();
  return (
    <aside
      aria-label="Settings"
      className="relative shrink-0 border-line border-l"
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
      <Inspector />
    </aside>
  );
}
