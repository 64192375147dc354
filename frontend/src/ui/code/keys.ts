/** Which keys do what in a text. */

import { bracketsAt } from "./brackets";
import type { CodeModel } from "./CodeModel";
import * as edits from "./edits";
import { lineAt } from "./folding";

/** What answers a key; false where it has nothing to do with it. */
export type Action = (model: CodeModel) => boolean;

const by =
  (command: edits.Command): Action =>
  (model) =>
    model.run(command);

/** A line that is indented as far as it goes has had its key too. */
const always =
  (command: edits.Command): Action =>
  (model) => {
    model.run(command);
    return true;
  };

const folding =
  (isFolded: boolean): Action =>
  (model) => {
    model.fold(lineAt(model.state.shown.starts, model.state.selected[0]), isFolded);
    return true;
  };

const selecting =
  (range: (place: edits.Place) => readonly [number, number]): Action =>
  (model) => {
    const { text, selected } = model.state;
    model.select(...range({ text, from: selected[0], to: selected[1], language: model.language }));
    return true;
  };

const toBracket: Action = (model) => {
  const { lines, shown, selected } = model.state;
  const found = bracketsAt(lines, shown.starts, selected[1]);
  const other = found?.isPaired ? found.places[1] : undefined;
  if (other === undefined) return false;
  model.select(other > selected[1] ? other + 1 : other);
  return true;
};

const home: Action = (model) => {
  const { text, selected } = model.state;
  model.select(edits.homeOf(text, selected[0]));
  return true;
};

export const KEYS: Readonly<Record<string, Action>> = {
  "Mod-z": (model) => model.undo() || true,
  "Mod-y": (model) => model.redo() || true,
  "Mod-Shift-z": (model) => model.redo() || true,
  Tab: always(edits.indent),
  "Shift-Tab": always(edits.outdent),
  "Mod-]": always(edits.indent),
  "Mod-[": always(edits.outdent),
  "Mod-Shift-[": folding(true),
  "Mod-Shift-]": folding(false),
  "Mod-/": by(edits.toggleComment),
  Enter: by(edits.newline),
  "Shift-Enter": by(edits.newline),
  "Mod-Enter": by(edits.blankLine),
  "Alt-ArrowUp": always(edits.moveUp),
  "Alt-ArrowDown": always(edits.moveDown),
  "Alt-Shift-ArrowUp": by(edits.copyUp),
  "Alt-Shift-ArrowDown": by(edits.copyDown),
  "Mod-Shift-k": by(edits.deleteLine),
  "Mod-Shift-\\": toBracket,
  "Mod-i": selecting(edits.larger),
  "Alt-l": selecting(edits.wholeLines),
  Home: home,
};

const UNSHIFTED: Readonly<Record<string, string>> = { "{": "[", "}": "]", "|": "\\" };

/** A key as it is named above. */
export function keyName(event: {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  shiftKey: boolean;
}): string {
  const isMod = event.ctrlKey || event.metaKey;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const isShifted = event.shiftKey && key !== "/";
  return (
    (isMod ? "Mod-" : "") +
    (event.altKey ? "Alt-" : "") +
    (isShifted ? "Shift-" : "") +
    (isMod ? (UNSHIFTED[key] ?? key) : key)
  );
}
