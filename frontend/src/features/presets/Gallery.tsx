import { Search } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import { useLocation } from "wouter";
import { useLoopPresets, useServerCatalog } from "@/state/queries";
import { presetAddress } from "@/state/unsaved";
import { Button } from "@/ui/Button";
import { classes } from "@/ui/classes";
import { WIDE_CONTROL } from "@/ui/control";
import { Kbd } from "@/ui/Kbd";
import { Select } from "@/ui/Select";
import { Empty, Unanswered } from "@/ui/States";
import { useWindowEvent } from "@/ui/useWindowEvent";
import { FILTERS, matches, ordered, type PresetOrder } from "./filters";
import { PresetCard } from "./PresetCard";

const GRID = "grid grid-cols-[repeat(auto-fill,minmax(264px,1fr))] gap-4";

export function Gallery({ onOpened }: { onOpened?: () => void }) {
  const presets = useLoopPresets();
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState("all");
  const [order, setOrder] = useState<PresetOrder>("first");
  const catalog = useServerCatalog().data;
  const [, navigate] = useLocation();
  // It becomes a loop of the user's own with the first change.
  const open = (name: string) => {
    navigate(presetAddress(name));
    onOpened?.();
  };

  if (presets.isPending) return <Skeletons />;
  if (presets.isError) {
    return <Unanswered query={presets} loading="" failed="The presets could not be loaded" />;
  }
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
      <div className="mb-4 flex flex-wrap items-center justify-between gap-2">
        <SearchBox words={words} onWords={setWords} />
        <div
          role="group"
          aria-label="Filters"
          className="flex flex-wrap gap-1.5 max-xl:order-last max-xl:basis-full"
        >
          {FILTERS.map(({ id, label, fits }) => (
            <Chip key={id} isOn={chosen === id} onClick={() => setChosen(id)}>
              {label} <span className="tabular opacity-70">{found.filter(fits).length}</span>
            </Chip>
          ))}
        </div>
        <span className="w-44">
          <Select label="Order of the presets" value={order} options={ORDERS} onChange={setOrder} />
        </span>
      </div>
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
        <ul className={GRID} onKeyDown={walk}>
          {shown.map((preset) => (
            <li key={preset.name}>
              <PresetCard preset={preset} catalog={catalog} onOpen={() => open(preset.name)} />
            </li>
          ))}
        </ul>
      )}
    </>
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

/** Arrow keys go from card to card, as the grid lies: left and right along it, up and down to the nearest. */
function walk(event: React.KeyboardEvent<HTMLElement>): void {
  const cards = [...event.currentTarget.querySelectorAll<HTMLElement>("[data-card]")];
  const here = cards.indexOf(document.activeElement as HTMLElement);
  const next = here < 0 ? undefined : target(cards, here, event.key);
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
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

function columnsOf(cards: readonly HTMLElement[]): number {
  const top = cards[0]?.getBoundingClientRect().top;
  const below = cards.findIndex((card) => card.getBoundingClientRect().top !== top);
  return below < 0 ? cards.length : below;
}

const ORDERS: readonly { value: PresetOrder; label: string }[] = [
  { value: "first", label: "Recommended order" },
  { value: "short", label: "Shortest first" },
  { value: "name", label: "By name" },
];

function SearchBox({ words, onWords }: { words: string; onWords: (words: string) => void }) {
  const field = useRef<HTMLInputElement>(null);
  useWindowEvent("keydown", (event) => {
    const isTyping = event.target instanceof HTMLElement && event.target.matches("input, textarea");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    field.current?.focus();
  });
  return (
    <span className="relative min-w-44 max-w-60 flex-1">
      <Search
        size={14}
        aria-hidden="true"
        className="pointer-events-none absolute top-2 left-2.5 text-faint"
      />
      <input
        ref={field}
        role="searchbox"
        aria-label="Search presets"
        placeholder="Search by idea or tag"
        className={`${WIDE_CONTROL} h-8 rounded-2 pr-8 pl-8`}
        value={words}
        onChange={(event) => onWords(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape" && words !== "") {
            event.stopPropagation();
            onWords("");
          }
        }}
      />
      <span className="pointer-events-none absolute top-1.5 right-2">
        <Kbd>/</Kbd>
      </span>
    </span>
  );
}

interface ChipProps {
  isOn: boolean;
  onClick: () => void;
  children: ReactNode;
}

function Chip({ isOn, onClick, children }: ChipProps) {
  return (
    <button
      type="button"
      aria-pressed={isOn}
      onClick={onClick}
      className={classes(
        "h-8 rounded-full border px-2.5 text-sm transition-colors",
        isOn
          ? "border-transparent bg-text text-surface"
          : "border-line bg-surface text-text hover:bg-hover",
      )}
    >
      {children}
    </button>
  );
}
