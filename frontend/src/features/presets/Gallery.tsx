import { type KeyboardEvent, useCallback, useState } from "react";
import { useLocation } from "wouter";
import type { LoopPreset } from "@/api/types";
import { useLoopPresets, useServerCatalog } from "@/state/queries";
import { presetAddress } from "@/state/unsaved";
import { Button } from "@/ui/Button";
import { PresetsFailed } from "@/ui/PresetsFailed";
import { Empty } from "@/ui/States";
import { FILTERS, matches, ordered, type PresetOrder } from "./filters";
import { GalleryBar } from "./GalleryBar";
import { PresetCard } from "./PresetCard";

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

/** Opens a preset to look at. It becomes a loop of the user's own with the first change. */
function useOpenPreset(onOpened?: () => void) {
  const [, navigate] = useLocation();
  return useCallback(
    (name: string) => {
      navigate(presetAddress(name));
      onOpened?.();
    },
    [navigate, onOpened],
  );
}

/** Arrow keys go from card to card, as the grid lies: left and right along it, up and down to the nearest. */
function useCardKeys() {
  return (event: KeyboardEvent<HTMLElement>) => {
    const cards = [...event.currentTarget.querySelectorAll<HTMLElement>("[data-card]")];
    const here = cards.indexOf(document.activeElement as HTMLElement);
    if (here < 0) return;
    const next = target(cards, here, event.key);
    if (next === undefined) return;
    event.preventDefault();
    next.focus();
  };
}

function target(cards: readonly HTMLElement[], here: number, key: string): HTMLElement | undefined {
  if (key === "ArrowRight") return cards[here + 1];
  if (key === "ArrowLeft") return cards[here - 1];
  if (key === "Home") return cards[0];
  if (key === "End") return cards.at(-1);
  if (key !== "ArrowDown" && key !== "ArrowUp") return undefined;
  const columns = columnsOf(cards);
  return cards[here + (key === "ArrowDown" ? columns : -columns)];
}

/** Cards of the first row. */
function columnsOf(cards: readonly HTMLElement[]): number {
  const top = cards[0]?.getBoundingClientRect().top;
  const below = cards.findIndex((card) => card.getBoundingClientRect().top !== top);
  return below < 0 ? cards.length : below;
}
