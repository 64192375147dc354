import { useEffect, useId, useState } from "react";
import type { CodeModel } from "./CodeModel";
import { type Offer, type Option, offered, type Word } from "./completions";

export type CompletionList = ReturnType<typeof useCompletions>;

interface Open extends Offer {
  chosen: number;
}

const PAGE = 8;

/** What is offered at the cursor; nothing without words. It follows what is typed, and goes with the cursor. */
export function useCompletions(model: CodeModel, words: readonly Word[] | null) {
  const [open, setOpen] = useState<Open | null>(null);
  const id = useId();
  const close = () => setOpen(null);

  useEffect(() => {
    if (words === null) return;
    let before = model.state;
    return model.subscribe(() => {
      const { state } = model;
      const isTyped =
        state.text.length === before.text.length + 1 &&
        state.selected[1] === before.selected[1] + 1 &&
        state.moves === before.moves;
      if (state.text !== before.text || state.selected !== before.selected)
        setOpen((old) => {
          if (state.selected[0] !== state.selected[1] || !(old || isTyped)) return null;
          const offer = offered(state.text, state.selected[1], words, false, state.lines);
          return offer && (isTyped || old?.from === offer.from) ? { ...offer, chosen: 0 } : null;
        });
      before = state;
    });
  }, [model, words]);

  const ask = () => {
    const { text, selected, lines } = model.state;
    const offer = words && offered(text, selected[1], words, true, lines);
    setOpen(offer ? { ...offer, chosen: 0 } : null);
  };
  const take = (option: Option) => {
    if (!open) return;
    const { text } = model.state;
    model.edit({ from: open.from, to: open.to, ...written(option, text, open.from) });
    close();
  };
  const onKey = (name: string): boolean => {
    if (name === "Mod- " && words) {
      ask();
      return true;
    }
    const option = open?.options[open.chosen];
    if (!open || !option) return false;
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: PAGE,
      PageUp: -PAGE,
    };
    const step = steps[name];
    if (step !== undefined) setOpen({ ...open, chosen: around(open, step) });
    else if (name === "Enter" || name === "Tab") take(option);
    else if (name === "Escape") close();
    else return false;
    return true;
  };
  const ofArea = {
    "aria-autocomplete": words ? ("list" as const) : undefined,
    "aria-controls": open ? id : undefined,
    "aria-activedescendant": open ? `${id}-${open.chosen}` : undefined,
  };
  return { id, open, close, take, onKey, ofArea };
}

/** One step goes around the end; a page stops there. */
function around({ chosen, options }: Open, step: number): number {
  const last = options.length - 1;
  if (Math.abs(step) > 1) return Math.min(last, Math.max(0, chosen + step));
  return (chosen + step + options.length) % options.length;
}

/** With the indent of its line; what stands between `$` is selected. */
function written({ label, insert }: Option, text: string, from: number) {
  const start = text.lastIndexOf("\n", from - 1) + 1;
  const indent = /^[ \t]*/.exec(text.slice(start, from))?.[0] ?? "";
  const [before = "", selected, after = ""] = (insert ?? label)
    .replaceAll("\n", `\n${indent}`)
    .split("$");
  const at = from + before.length;
  const end = at + (selected?.length ?? 0);
  return { insert: before + (selected ?? "") + after, select: [at, end] as const };
}
