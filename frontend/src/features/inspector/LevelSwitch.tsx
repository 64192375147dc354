import { useCatalog } from "@/document/context";
import { formatName } from "@/lib/format";
import { usePreferences } from "@/session/preferences";
import { Segmented } from "@/ui/Segmented";

/** How many fields are shown. What is set or wrong is always shown. */
export function LevelSwitch() {
  const { levels } = useCatalog();
  const level = usePreferences((state) => state.level);
  const set = usePreferences((state) => state.set);
  return (
    <Segmented
      label="Level of detail"
      isWide
      value={level}
      options={levels.map((value) => ({ value, label: formatName(value) }))}
      onChange={(value) => set({ level: value })}
    />
  );
}
