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
    text: "Data flows from left to right: prompts come in, a model generates answers, rewards score them. What a model learns from leads back to it.",
    target: "main",
  },
  {
    title: "A node does one thing",
    text: "It provides rows, generates, scores, compares or learns. Select one to see its settings; drag from a port to connect it to what fits.",
    target: ".react-flow__node",
  },
  {
    title: "Settings of the selection",
    text: "With nothing selected, those of the whole loop. Simple, advanced and expert decide how many are shown, never which take effect.",
    target: "aside[aria-label='Settings']",
    prepare: () => usePreferences.getState().set({ isInspectorOpen: true }),
  },
  {
    title: "Who learns when",
    text: "The schedule splits training into phases. Beside it: the plan, problems with their fixes, memory and time, and the loop as YAML.",
    target: "section[aria-label='Lower panel']",
    prepare: () => usePreferences.getState().set({ isDockOpen: true }),
  },
  {
    title: "Does it fit, and how long does a step take?",
    text: "Estimated after every change, before anything runs.",
    target: "[data-tour='memory']",
  },
  {
    title: "Run it",
    text: "The graph then shows what happens: rates on the edges, which node waits for which, curves, and every generated text.",
    target: "[data-tour='run']",
  },
  {
    title: "Everything by keyboard, and help everywhere",
    text: "All commands are one key press away. Problems and alerts have a “Why?”, and a learner shows its formulas.",
    target: "[data-tour='more']",
  },
];
