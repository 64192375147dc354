import { useState } from "react";
import type { LoopPreset } from "@/api/types";
import { useLoopPresets } from "@/session/useLoopPresets";
import { useServerCatalog } from "@/session/useServerCatalog";
import { Button } from "@/ui/Button";
import { PresetsFailed } from "@/ui/PresetsFailed";
import { Empty } from "@/ui/States";
import { FILTERS, matches, ordered, type PresetOrder } from "./filters";
import { GalleryBar } from "./GalleryBar";
import { PresetCard } from "./PresetCard";
import { useCardKeys } from "./useCardKeys";
import { useOpenPreset } from "./useOpenPreset";

const GRID = "grid grid-cols-[repeat(auto-fill,minmax(264px,1fr))] gap-4";

/** Loops that ship with coloop, as cards: searched, narrowed, walked through by arrow keys. */
export function Gallery({ onOpened }: { onOpened?: () => void }) {
  const presets = useLoopPresets();
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState("all");
  const [order, setOrder] = useState<PresetOrder>("first");

  if (presets.isPending) return <Skeletons />;
  if (presets.isError) return <PresetsFailed presets={presets} />;
  const found = presets.data.filter((preset) => matches(preset, words));
  const filter = FILTERS.find(({ id }) => id === chosen) ?? FILTERS[0];
  const shown = ordered(
    found.filter((preset) => filter?.fits(preset)),
    order,
  );
  const clear = () => {
    setWords("");
    setChosen("all");
  };
  return (
    <>
      <GalleryBar
        found={found}
        words={words}
        onWords={setWords}
        chosen={chosen}
        onChoose={setChosen}
        order={order}
        onOrder={setOrder}
      />
      <p role="status" className="sr-only">
        {shown.length} of {presets.data.length} presets
      </p>
      {shown.length === 0 ? (
        <Empty
          title={words ? `No preset matches “${words}”` : "No preset is of this kind"}
          action={<Button onClick={clear}>Show all presets</Button>}
        >
          Search covers names, descriptions, tags, algorithms and hardware.
        </Empty>
      ) : (
        <Cards presets={shown} onOpened={onOpened} />
      )}
    </>
  );
}

function Cards({
  presets,
  onOpened,
}: {
  presets: readonly LoopPreset[];
  onOpened: (() => void) | undefined;
}) {
  const catalog = useServerCatalog();
  const open = useOpenPreset(onOpened);
  const walk = useCardKeys();
  return (
    <ul className={GRID} onKeyDown={walk}>
      {presets.map((preset) => (
        <li key={preset.name}>
          <PresetCard preset={preset} catalog={catalog.data} onOpen={() => open(preset.name)} />
        </li>
      ))}
    </ul>
  );
}

function Skeletons() {
  return (
    <div role="status" aria-label="Loading the presets" className={GRID}>
      {Array.from({ length: 8 }, (_, index) => (
        <div key={index} className="skeleton h-[266px]" />
      ))}
    </div>
  );
}
