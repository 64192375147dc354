/** Which number of the estimate a formula is asked for, and which popover shows it. */
import type { FocusEvent, MouseEvent, PointerEvent } from "react";
import { create } from "zustand";
import type { MemoryPart, Term, Terms } from "@/api/types";
import { partName } from "@/ui/MemoryBar";

/** A number of the estimate: that of the loop as it is, or as it is shown while a budget is tried. */
export type NumberOf = { isTried?: boolean } & (
  | ({ of: "part"; pool: string } & MemoryPart)
  | { of: "peak"; pool: string }
  | { of: "stage"; stage: string; phase: string | null }
  | { of: "step"; phase: string }
  | { of: "total" | "gpu_hours" | "cost" }
);

interface Shown {
  number: NumberOf | null;
  title: string;
  anchor: HTMLElement | null;
  /** Opened by a press: it stays, and has the focus. */
  isPinned: boolean;
}

const NONE: Shown = { number: null, title: "", anchor: null, isPinned: false };

export const useFormula = create<Shown>()(() => NONE);

const OPEN_MILLISECONDS = 250;
const CLOSE_MILLISECONDS = 150;
let pause: ReturnType<typeof setTimeout> | undefined;
let isGivingBack = false;

function open(shown: Shown): void {
  clearTimeout(pause);
  useFormula.setState(shown);
}

export function closeFormula(): void {
  clearTimeout(pause);
  useFormula.setState(NONE);
}

/** The focus goes back to the number without asking for its formula once more. */
export function giveBack(anchor: HTMLElement): void {
  isGivingBack = true;
  anchor.focus();
  isGivingBack = false;
}

/** While the pointer is over the formula itself. */
export function keepFormula(): void {
  clearTimeout(pause);
}

export function leaveFormula(): void {
  clearTimeout(pause);
  if (useFormula.getState().isPinned) return;
  pause = setTimeout(closeFormula, CLOSE_MILLISECONDS);
}

/** What makes a button one that shows the formula behind a number: on hover, on keyboard focus, on a press. */
export function behind(number: NumberOf, title: string) {
  const show = (anchor: HTMLElement, isPinned: boolean) =>
    open({ number, title, anchor, isPinned });
  return {
    type: "button" as const,
    "aria-haspopup": "dialog" as const,
    onPointerEnter: ({ currentTarget, pointerType }: PointerEvent<HTMLElement>) => {
      if (pointerType === "touch" || useFormula.getState().isPinned) return;
      clearTimeout(pause);
      const wait = useFormula.getState().number === null ? OPEN_MILLISECONDS : 0;
      pause = setTimeout(() => show(currentTarget, false), wait);
    },
    onPointerLeave: leaveFormula,
    onFocus: ({ currentTarget }: FocusEvent<HTMLElement>) => {
      if (!isGivingBack && currentTarget.matches(":focus-visible")) show(currentTarget, false);
    },
    onBlur: leaveFormula,
    onClick: ({ currentTarget }: MouseEvent<HTMLElement>) => show(currentTarget, true),
  };
}

/** Of a part of a pool's memory. */
export function partBehind(pool: string, isTried: boolean) {
  return (part: MemoryPart) => behind({ of: "part", pool, isTried, ...part }, partName(part));
}

export function termOf(terms: Terms, number: NumberOf): Term | null {
  switch (number.of) {
    case "part": {
      const alike = terms.parts.filter(
        (one) =>
          one.pool === number.pool &&
          one.node === number.node &&
          one.part === number.part &&
          one.stages.join() === number.stages.join(),
      );
      return (alike.find((one) => one.bytes === number.bytes) ?? alike[0])?.term ?? null;
    }
    case "peak":
      return terms.peaks.find((one) => one.pool === number.pool)?.term ?? null;
    case "stage": {
      const alike = terms.stages.filter((one) => one.stage === number.stage);
      const own = alike.find((one) => one.phase === number.phase);
      return (own ?? alike.find((one) => one.phase === null))?.term ?? null;
    }
    case "step":
      return terms.steps.find((one) => one.phase === number.phase)?.term ?? null;
    default:
      return terms[number.of];
  }
}

/** Arrows go from one number of a row to the next. */
export function rove(event: React.KeyboardEvent<HTMLElement>): void {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (by === undefined) return;
  const all = [...event.currentTarget.querySelectorAll("button")];
  const at = all.findIndex((one) => one.matches(":focus"));
  all[at + by]?.focus();
  event.preventDefault();
}
