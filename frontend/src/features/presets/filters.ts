import type { LoopPreset } from "@/api/types";

export interface PresetFilter {
  id: string;
  label: string;
  fits: (preset: LoopPreset) => boolean;
}

export const FILTERS: readonly PresetFilter[] = [
  { id: "all", label: "All", fits: () => true },
  { id: "here", label: "Runs here", fits: (preset) => preset.runnable_here },
  { id: "co", label: "Co-training", fits: ({ traits }) => traits.tags.includes("co-training") },
  { id: "online", label: "Online", fits: ({ traits }) => traits.mode === "online" },
  { id: "offline", label: "Offline", fits: ({ traits }) => traits.mode === "offline" },
  {
    id: "judging",
    label: "Reward modeling",
    fits: ({ traits }) => traits.mode === "reward_modeling",
  },
  { id: "gpus", label: "Needs GPUs", fits: ({ traits }) => traits.needs_gpus },
];

export type PresetOrder = "first" | "short" | "name";

const FIRST = "grpo-arithmetic";

/** Whether every word is somewhere in what is said of the preset: a mode's or a hardware's name counts as well. */
export function matches(preset: LoopPreset, words: string): boolean {
  const { name, title, description, traits } = preset;
  const text = [
    name,
    title,
    description,
    traits.lesson,
    traits.mode.replaceAll("_", " "),
    traits.hardware,
    ...traits.tags,
    ...traits.algorithms,
  ]
    .join(" ")
    .toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

export function ordered(presets: readonly LoopPreset[], order: PresetOrder): LoopPreset[] {
  if (order === "name") return presets.toSorted((a, b) => a.title.localeCompare(b.title));
  if (order === "short") return presets.toSorted((a, b) => a.traits.seconds - b.traits.seconds);
  const rank = (preset: LoopPreset) =>
    preset.name === FIRST
      ? 0
      : preset.traits.tags.includes("first loop")
        ? 1
        : preset.traits.needs_gpus
          ? 4
          : preset.traits.tags.includes("co-training")
            ? 2
            : 3;
  return presets.toSorted((a, b) => rank(a) - rank(b) || a.title.localeCompare(b.title));
}

export function isFirst(preset: LoopPreset): boolean {
  return preset.name === FIRST;
}
