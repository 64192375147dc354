import { type KeyboardEvent, useRef } from "react";
import { closing, isBetween } from "./brackets";
import type { CodeModel } from "./CodeModel";
import { KEYS, keyName } from "./keys";

/** What is asked first; whether it took the key. */
export type OnKey = (name: string) => boolean;

const TAB = /^(?:Shift-)?Tab$/;

/** The keys of the text. After Escape, or once Control+M was pressed, Tab goes on to what comes next. */
export function useKeys(model: CodeModel, first: readonly OnKey[]) {
  const tab = useRef({ leaves: false, isFree: false });
  return (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.nativeEvent.isComposing || event.getModifierState("AltGraph")) return;
    const name = keyName(event);
    if (event.key === "Shift") return;
    const isLeaving = TAB.test(name) && (tab.current.leaves || tab.current.isFree);
    tab.current.leaves = false;
    if (isLeaving) return;
    model.look();
    if (first.some((one) => one(name))) {
      event.preventDefault();
    } else if (name === "Escape") {
      tab.current.leaves = true;
    } else if (event.ctrlKey && name === "Mod-m") {
      tab.current.isFree = !tab.current.isFree;
      event.preventDefault();
    } else if (KEYS[name]?.(model) ?? typed(model, event)) {
      event.preventDefault();
    }
  };
}

/** Brackets and quotes that close by themselves. */
function typed(
  model: CodeModel,
  { key, ctrlKey, metaKey, currentTarget }: KeyboardEvent<HTMLTextAreaElement>,
): boolean {
  if (ctrlKey || metaKey || currentTarget.readOnly || model.language === "plain") return false;
  const { text, selected } = model.state;
  const [from, to] = selected;
  if (key === "Backspace" && from === to && isBetween(text, from)) {
    const select = [from - 1, from - 1] as const;
    return model.edit({ from: from - 1, to: from + 1, insert: "", select }, "deleted");
  }
  if (key.length !== 1) return false;
  const found = closing(text, selected, key, model.language);
  if (found === null) return false;
  if (found === "pass") model.select(to + 1);
  else
    model.edit(
      { from, to, insert: found.insert, select: [from + found.by, to + found.by] },
      "typed",
    );
  return true;
}
