/** The steps of the tour: what is pointed at, and what is said of it. Places that are not there are passed over. */
import { usePreferences } from "@/session/preferences";

export interface TourStep {
  title: string;
  text: string;
  /** What is pointed at. */
  target: string;
  /** Opens what would be hidden. */
  prepare?: () => void;
}

export const STEPS: readonly TourStep[] = [
  {
    title: "This is a loop",
    text: "Data flows from left to right: problems come in, a model writes answers, something scores them. What teaches a model leads back to it.",
    target: "main",
  },
  {
    title: "A node does one thing",
    text: "It gives rows, writes, scores, compares or learns. Choose one to see its settings; drag from a port to connect it to what fits.",
    target: ".react-flow__node",
  },
  {
    title: "Settings of what is chosen",
    text: "With nothing chosen, those of the whole loop. The switch for simple, advanced and expert decides how many are shown, never which are in force.",
    target: "aside[aria-label='Settings']",
    prepare: () => usePreferences.getState().set({ isInspectorOpen: true }),
  },
  {
    title: "When who learns",
    text: "The schedule puts lessons into phases. Beside it: the plan, problems with their fixes, memory and time, and the loop as text.",
    target: "section[aria-label='Lower panel']",
    prepare: () => usePreferences.getState().set({ isDockOpen: true }),
  },
  {
    title: "Does it fit, and how long does a step take?",
    text: "Estimated with every change, before anything runs.",
    target: "[data-tour='memory']",
  },
  {
    title: "Run it",
    text: "The graph then shows what happens: rates on the edges, who waits for whom, curves, and every text that was written.",
    target: "[data-tour='run']",
  },
  {
    title: "Everything by keyboard, and help everywhere",
    text: "All commands are one key press away. Problems and alerts have a “Why?”, and a learner shows its formulas.",
    target: "[data-tour='more']",
  },
];
