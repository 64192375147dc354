/**
 * Undo and redo on immer patches.
 *
 * An entry is one thing that the user did. Entries of one group within a short time are one (typing in a
 * field, a burst of arrow keys). Each state has a number, so that what belongs to a state (its YAML text)
 * can be found again after undo. Selection and viewport are not part of it.
 */
import { applyPatches, enablePatches, type Patch, produceWithPatches } from "immer";
import type { LoopDocument } from "@/document/types";
import type { Command } from "./command";

enablePatches();

export const GROUP_MILLISECONDS = 600;
const MAX_ENTRIES = 200;

export interface Entry {
  label: string;
  patches: Patch[];
  inverse: Patch[];
  group: string | null;
  at: number;
  before: number;
  after: number;
}

export interface History {
  document: LoopDocument;
  state: number;
  lastState: number;
  past: readonly Entry[];
  future: readonly Entry[];
}

export interface DispatchOptions {
  label?: string;
  group?: string;
  at?: number;
}

export function startHistory(document: LoopDocument, state = 0): History {
  return { document, state, lastState: state, past: [], future: [] };
}

export function dispatch<A>(
  history: History,
  command: Command<A>,
  args: A,
  options: DispatchOptions = {},
): History {
  const [document, patches, inverse] = produceWithPatches(history.document, (draft) => {
    command.recipe(draft, args);
  });
  if (patches.length === 0) return history;
  const at = options.at ?? Date.now();
  const state = history.lastState + 1;
  const entry: Entry = {
    label: options.label ?? command.label,
    patches,
    inverse,
    group: options.group ?? null,
    at,
    before: history.state,
    after: state,
  };
  const last = history.past.at(-1);
  const joins =
    last !== undefined &&
    entry.group !== null &&
    last.group === entry.group &&
    at - last.at <= GROUP_MILLISECONDS &&
    history.future.length === 0;
  const past = joins
    ? [...history.past.slice(0, -1), join(last, entry)]
    : [...history.past, entry].slice(-MAX_ENTRIES);
  return { document, state, lastState: state, past, future: [] };
}

function join(first: Entry, second: Entry): Entry {
  return {
    ...second,
    label: first.label,
    patches: [...first.patches, ...second.patches],
    inverse: [...second.inverse, ...first.inverse],
    before: first.before,
  };
}

export function undo(history: History): History {
  const entry = history.past.at(-1);
  if (!entry) return history;
  return {
    document: applyPatches(history.document, entry.inverse),
    state: entry.before,
    lastState: history.lastState,
    past: history.past.slice(0, -1),
    future: [entry, ...history.future],
  };
}

export function redo(history: History): History {
  const [entry, ...future] = history.future;
  if (!entry) return history;
  return {
    document: applyPatches(history.document, entry.patches),
    state: entry.after,
    lastState: history.lastState,
    // A group does not go on across an undo.
    past: [...history.past, { ...entry, group: null }],
    future,
  };
}
