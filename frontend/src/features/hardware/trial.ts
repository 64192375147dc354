/**
 * What the budget slider tries: nothing of it is in the loop until it is applied. Each move asks the service
 * after a pause; an answer that a later move has overtaken is dropped.
 */
import { create } from "zustand";
import { errorMessage, isAbort } from "@/api/client";
import { fitLoop } from "@/api/routes";
import type { FitAnswer, JsonObject } from "@/api/types";

export const PAUSE_MILLISECONDS = 80;

export interface Trial {
  budget: number | null;
  answer: FitAnswer | null;
  isAsking: boolean;
  error: string | null;
}

const NOTHING: Trial = { budget: null, answer: null, isAsking: false, error: null };

export const useTrial = create<Trial>()(() => NOTHING);

let pause: ReturnType<typeof setTimeout> | undefined;
let current: AbortController | null = null;

export function moveTo(budget: number, spec: JsonObject): void {
  useTrial.setState({ budget });
  clearTimeout(pause);
  pause = setTimeout(() => void ask(spec, budget), PAUSE_MILLISECONDS);
}

export function askOwn(spec: JsonObject): void {
  clearTimeout(pause);
  void ask(spec, null);
}

export function giveUp(): void {
  clearTimeout(pause);
  current?.abort();
  current = null;
  useTrial.setState(NOTHING);
}

export function fitNow(spec: JsonObject): Promise<FitAnswer> {
  return fitLoop({ spec, with_ways: true });
}

async function ask(spec: JsonObject, budget: number | null): Promise<void> {
  current?.abort();
  const mine = new AbortController();
  current = mine;
  useTrial.setState({ isAsking: true });
  try {
    const share = budget === null ? {} : { budget_fraction: budget };
    const answer = await fitLoop({ spec, with_ways: false, ...share }, mine.signal);
    if (current !== mine) return;
    useTrial.setState({ answer, isAsking: !answer.fits, error: null });
    if (answer.fits) return;
    // What else would help takes longer, and is wanted only where nothing else does.
    const further = await fitLoop({ spec, with_ways: true, ...share }, mine.signal);
    if (current === mine) useTrial.setState({ answer: further, isAsking: false });
  } catch (error) {
    if (current !== mine || isAbort(error)) return;
    useTrial.setState({ isAsking: false, error: errorMessage(error) });
  }
}
