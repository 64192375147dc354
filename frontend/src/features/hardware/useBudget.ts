import { useEffect, useRef } from "react";
import { toast } from "sonner";
import { create } from "zustand";
import { errorMessage, isAbort } from "@/api/client";
import { fitLoop } from "@/api/routes";
import type { Change, FitAnswer, JsonObject } from "@/api/types";
import { toSpec } from "@/document/convert";
import { refusalOf } from "@/document/problems";
import { formatShare } from "@/lib/format";
import { applyFit } from "@/state/commands/applyChanges";
import { useDocument, useOpenLoop, useSync } from "@/state/document/context";
import type { SyncState } from "@/state/sync/state";

export type Budget = ReturnType<typeof useBudget>;

export function useBudget() {
  const { store, catalog } = useOpenLoop();
  const isOfBefore = useSync(isUnread);
  const check = useSync((state) => (isUnread(state) ? state.lastRead : state.check));
  const own = check?.budget ?? 1;
  const { budget, answer, isAsking } = useTrial();
  const isTrying = budget !== null && budget !== own;
  const shown = isTrying ? answer : null;
  const isSettled = answer !== null && Math.abs(answer.budget_fraction - (budget ?? own)) < 1e-4;

  const spec = () => toSpec(store.getState().document);
  const take = (edits: readonly Change[], label: string, unlocks: readonly string[] = []) => {
    giveUp();
    store.dispatch(applyFit, { catalog, edits, unlocks }, { label });
  };
  return {
    share: budget ?? own,
    own,
    isTrying,
    isSettled,
    isAsking,
    answer,
    /** Costs under the budget: as tried, else of the loop as it is, or as it was when it could last be read. */
    estimate: shown?.after ?? check?.estimate ?? null,
    time: shown?.after_time ?? check?.time ?? null,
    /** Why no run takes the loop as it is, whatever its memory; null: one would. */
    refusal: refusalOf(check?.report.diagnostics ?? []),
    isOfBefore,
    move: (share: number) => (share === own ? giveUp() : moveTo(share, spec())),
    back: giveUp,
    apply: () => {
      if (answer && isSettled)
        take(answer.edits, `Fit to ${formatShare(answer.budget_fraction)} of the memory`);
    },
    take,
    /** Settings that fit under the loop's own budget, at once; false where there are none. */
    makeItFit: async (): Promise<boolean> => {
      try {
        const found = await fitLoop({ spec: spec(), with_ways: true });
        if (found.fits) take(found.edits, "Make it fit");
        return found.fits;
      } catch (error) {
        toast.error("No settings were found.", { description: errorMessage(error) });
        return false;
      }
    },
  };
}

export function isPromise({ answer, isTrying, isSettled }: Budget): boolean {
  return isTrying && isSettled && answer?.fits === true && answer.refusal === null;
}

/** Why what is tried cannot be applied; null: it can. */
export function trialRefusal({ answer, isSettled }: Budget, instead: string): string | null {
  if (!isSettled) return "Still looking for settings";
  return answer?.fits ? null : `No allowed change makes it fit: ${instead}`;
}

/** What is said of a budget that nothing meets; null: something does, or it is still looked for. */
export function unfitOf({ answer, isTrying, isSettled }: Budget): string | null {
  return isTrying && isSettled && answer?.fits === false ? answer.verdict : null;
}

/** What was tried was about the loop as it was: a change of it, and leaving it, puts the slider back. */
export function useResetTrial(): void {
  const document = useDocument((state) => state.document);
  const last = useRef(document);
  useEffect(() => {
    if (last.current !== document) giveUp();
    last.current = document;
  }, [document]);
  useEffect(() => giveUp, []);
}

function isUnread({ check, lastRead }: SyncState): boolean {
  return check !== null && check.estimate === null && lastRead?.estimate != null;
}

export const PAUSE_MILLISECONDS = 80;

interface Trial {
  budget: number | null;
  answer: FitAnswer | null;
  isAsking: boolean;
}

const NOTHING: Trial = { budget: null, answer: null, isAsking: false };

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

async function ask(spec: JsonObject, budget: number | null): Promise<void> {
  current?.abort();
  const mine = new AbortController();
  current = mine;
  useTrial.setState({ isAsking: true });
  try {
    const share = budget === null ? {} : { budget_fraction: budget };
    const answer = await fitLoop({ spec, with_ways: false, ...share }, mine.signal);
    if (current !== mine) return;
    useTrial.setState({ answer, isAsking: !answer.fits });
    if (answer.fits) return;
    // What else would help takes longer, and is wanted only where nothing else does.
    const further = await fitLoop({ spec, with_ways: true, ...share }, mine.signal);
    if (current === mine) useTrial.setState({ answer: further, isAsking: false });
  } catch (error) {
    if (current !== mine || isAbort(error)) return;
    useTrial.setState({ isAsking: false });
  }
}
