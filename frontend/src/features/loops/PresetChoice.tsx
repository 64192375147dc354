import { formatName } from "@/lib/format";
import type { useLoopPresets } from "@/session/useLoopPresets";
import { PresetsFailed } from "@/ui/PresetsFailed";
import { RichText } from "@/ui/RichText";
import { Select } from "@/ui/Select";
import { Loading } from "@/ui/States";

interface PresetChoiceProps {
  presets: ReturnType<typeof useLoopPresets>;
  chosen: string;
  onChoose: (name: string) => void;
}

/** Which preset a loop begins as, and what that one is. */
export function PresetChoice({ presets, chosen, onChoose }: PresetChoiceProps) {
  if (presets.isError) return <PresetsFailed presets={presets} />;
  if (!presets.data) return <Loading label="Loading the presets" />;
  const preset = presets.data.find(({ name }) => name === chosen);
  return (
    <div>
      <Select
        label="Preset"
        value={chosen}
        options={presets.data.map(({ name, title, runnable_here: runsHere }) => ({
          value: name,
          label: title || formatName(name),
          help: runsHere ? name : `${name}, not on this machine`,
        }))}
        onChange={onChoose}
      />
      <p className="mt-1.5 line-clamp-3 text-muted text-xs">
        <RichText text={preset?.description ?? ""} />
      </p>
    </div>
  );
}
