/** The ways to line up what is selected, as commands and buttons call them. */
import type { Alignment, Direction } from "@/document/align";

export const ALIGNMENTS: readonly [Alignment, string][] = [
  ["left", "Align left sides"],
  ["center", "Align centers"],
  ["right", "Align right sides"],
  ["top", "Align tops"],
  ["middle", "Align middles"],
  ["bottom", "Align bottoms"],
];

export const DISTRIBUTIONS: readonly [Direction, string][] = [
  ["across", "Distribute across"],
  ["down", "Distribute down"],
];
