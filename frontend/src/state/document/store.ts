/**
 * The store of one open loop. The document changes only through `dispatch`, `undo` and `redo`.
 *
 * Beside the document stands its YAML text, which the server writes: `textState` says to which state
 * of the document it belongs. Texts of earlier states are kept, so that undo brings comments back.
 */
import { createStore } from "zustand/vanilla";
import type { LoopDocument } from "@/document/types";
import { type Command, defineCommand } from "./command";
import {
  type DispatchOptions,
  dispatch as dispatchHistory,
  type Entry,
  type History,
  redo as redoHistory,
  startHistory,
  undo as undoHistory,
} from "./history";

const KEPT_TEXTS = 200;
const NO_STATE = -1;

export interface StoreDispatchOptions extends DispatchOptions {
  /** A field that may change during a run, so also where the loop is locked. */
  isHotEdit?: boolean;
}

export interface DocumentState {
  history: History;
  document: LoopDocument;
  text: string;
  textState: number;
  isReadonly: boolean;
}

export type DocumentStore = ReturnType<typeof createDocumentStore>;

interface OpenDocument {
  document: LoopDocument;
  text: string;
  isReadonly?: boolean;
  /** What is to follow every command, as a part of it. */
  settle?: (draft: LoopDocument) => void;
}

export function createDocumentStore({ document, text, isReadonly = false, settle }: OpenDocument) {
  const texts = new Map<number, string>([[0, text]]);

  const store = createStore<DocumentState>()(() => ({
    history: startHistory(document),
    document,
    text,
    textState: 0,
    isReadonly,
  }));
  const { getState: get, setState: set } = store;
  const show = (history: History) => {
    const known = texts.get(history.state);
    set({
      history,
      document: history.document,
      ...(known === undefined ? {} : { text: known, textState: history.state }),
    });
  };
  const move = (entry: Entry | undefined, go: (history: History) => History) => {
    const { history, isReadonly: isLocked } = get();
    if (!entry || isLocked) return null;
    show(go(history));
    return entry.label;
  };
  return Object.assign(store, {
    dispatch: <A>(command: Command<A>, args: A, options?: StoreDispatchOptions) => {
      if (get().isReadonly && !options?.isHotEdit) return;
      const settled = settle === undefined ? command : followedBy(command, settle);
      const history = dispatchHistory(get().history, settled, args, options);
      if (history !== get().history) show(history);
    },
    undo: () => move(get().history.past.at(-1), undoHistory),
    redo: () => move(get().history.future[0], redoHistory),
    /** Text and document that belong together; `null` for the current state of the document. */
    setText: (newText: string, state: number | null) => {
      const at = state ?? get().history.state;
      texts.set(at, newText);
      if (texts.size > KEPT_TEXTS) texts.delete(texts.keys().next().value as number);
      if (at === get().history.state) set({ text: newText, textState: at });
    },
    /** The text may be older than the document, also when an undo brings this document back: it is written anew. */
    outdateText: () => {
      texts.clear();
      set({ textState: NO_STATE });
    },
  });
}

function followedBy<A>(command: Command<A>, settle: (draft: LoopDocument) => void): Command<A> {
  return defineCommand(command.label, (draft, args) => {
    command.recipe(draft, args);
    settle(draft);
  });
}
