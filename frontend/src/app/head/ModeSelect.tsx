import { modeNamed } from "@/catalog/modes";
import { useCatalog, useDocument } from "@/document/context";
import { useMode, useSetMode } from "@/document/useMode";
import { Select } from "@/ui/Select";

/** What the loop is made for, beside its name. */
export function ModeSelect() {
  const catalog = useCatalog();
  const isReadonly = useDocument((state) => state.isReadonly);
  const mode = useMode();
  const choose = useSetMode();
  return (
    <span className="shrink-0">
      <Select
        label="Mode of the loop"
        value={mode.name}
        options={catalog.modes.map(({ name, title, help }) => ({
          value: name,
          label: title,
          help,
        }))}
        isDisabled={isReadonly}
        className="whitespace-nowrap text-xs"
        onChange={(name) => choose(modeNamed(catalog, name))}
      />
    </span>
  );
}
