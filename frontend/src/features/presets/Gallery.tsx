import { useState } from "react";
import { useLoopPresets } from "@/session/useLoopPresets";
import { WIDE_CONTROL } from "@/ui/control";
import { PresetsFailed } from "@/ui/PresetsFailed";
import { PresetCard } from "./PresetCard";
import { useOpenPreset } from "./useOpenPreset";

/** Loops that ship with coloop, as cards. */
export function Gallery({ onOpened }: { onOpened?: () => void }) {
  const presets = useLoopPresets();
  const [filter, setFilter] = useState("");
  const open = useOpenPreset(onOpened);

  if (presets.isPending) return <Skeletons />;
  if (presets.isError) return <PresetsFailed presets={presets} />;
  const words = filter.toLowerCase().split(/\s+/);
  const shown = presets.data.filter((preset) => {
    const text = [preset.name, preset.title, preset.description, ...(preset.tags ?? [])]
      .join(" ")
      .toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return (
    <>
      <input
        role="searchbox"
        aria-label="Filter presets"
        placeholder="Filter by name or tag"
        className={`${WIDE_CONTROL} mb-4 max-w-80`}
        value={filter}
        onChange={(event) => setFilter(event.target.value)}
      />
      {shown.length === 0 ? (
        <p className="text-muted text-sm">No preset matches “{filter}”.</p>
      ) : null}
      <ul className="grid grid-cols-[repeat(auto-fill,minmax(256px,1fr))] gap-3">
        {shown.map((preset) => (
          <li key={preset.name}>
            <PresetCard preset={preset} onOpen={() => open(preset.name)} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Skeletons() {
  return (
    <div
      role="status"
      aria-label="Loading the presets"
      className="grid grid-cols-[repeat(auto-fill,minmax(256px,1fr))] gap-3"
    >
      {Array.from({ length: 6 }, (_, index) => (
        <div key={index} className="skeleton h-40" />
      ))}
    </div>
  );
}
