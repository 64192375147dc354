import { Search } from "lucide-react";
import { type ReactNode, useEffect, useRef } from "react";
import type { LoopPreset } from "@/api/types";
import { classes } from "@/ui/classes";
import { WIDE_CONTROL } from "@/ui/control";
import { Kbd } from "@/ui/Kbd";
import { Select } from "@/ui/Select";
import { FILTERS, type PresetOrder } from "./filters";

const ORDERS: readonly { value: PresetOrder; label: string }[] = [
  { value: "first", label: "Recommended order" },
  { value: "short", label: "Shortest first" },
  { value: "name", label: "By name" },
];

interface GalleryBarProps {
  /** What the words leave; the filters count these. */
  found: readonly LoopPreset[];
  words: string;
  onWords: (words: string) => void;
  chosen: string;
  onChoose: (id: string) => void;
  order: PresetOrder;
  onOrder: (order: PresetOrder) => void;
}

/** Search, filters with their counts, and the order. */
export function GalleryBar(props: GalleryBarProps) {
  return (
    <div className="mb-4 flex flex-wrap items-center justify-between gap-2">
      <SearchBox words={props.words} onWords={props.onWords} />
      <div
        role="group"
        aria-label="Filters"
        className="flex flex-wrap gap-1.5 max-xl:order-last max-xl:basis-full"
      >
        {FILTERS.map(({ id, label, fits }) => (
          <Chip key={id} isOn={props.chosen === id} onClick={() => props.onChoose(id)}>
            {label} <span className="tabular opacity-70">{props.found.filter(fits).length}</span>
          </Chip>
        ))}
      </div>
      <span className="w-44">
        <Select
          label="Order of the presets"
          value={props.order}
          options={ORDERS}
          onChange={props.onOrder}
        />
      </span>
    </div>
  );
}

function SearchBox({ words, onWords }: { words: string; onWords: (words: string) => void }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const isTyping =
        event.target instanceof HTMLElement && event.target.matches("input, textarea");
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      field.current?.focus();
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
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

function Chip({
  isOn,
  onClick,
  children,
}: {
  isOn: boolean;
  onClick: () => void;
  children: ReactNode;
}) {
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
