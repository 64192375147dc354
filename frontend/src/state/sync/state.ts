/**
 * What the page knows of the server's view of an open loop, as a state machine: what may happen, and what
 * the page says after it. Pure; `LoopSync` makes things happen.
 *
 *     text   agreed ──typed──▶ typed ──read──▶ agreed
 *                                └──unreadable──▶ broken ──typed | discarded──▶ …
 *     save   saved ──edited──▶ unsaved ──saving──▶ saving ──saved | refused | failed | met──▶ …
 *     check  idle ──checking──▶ checking ──checked──▶ done
 */
import { createStore, type StoreApi } from "zustand/vanilla";
import type { CheckAnswer, Diagnostic, Loop } from "@/api/types";

/** The revision of a loop that the server does not have yet. It gets it with the first change. */
export const NOT_SAVED = "";

export type SaveStatus = "saved" | "unsaved" | "saving" | "offline" | "conflict" | "refused";

export type CheckStatus = "idle" | "checking" | "done" | "offline";

export interface SyncState {
  save: SaveStatus;
  saveMessage: string | null;
  savedAt: number | null;
  revision: string;
  conflict: Loop | null;
  checkStatus: CheckStatus;
  check: CheckAnswer | null;
  /** The text that `check` is about; null where there was none. */
  checkedText: string | null;
  /** The last check of a loop that could be read and costs something; null where there is none to speak of. */
  lastRead: CheckAnswer | null;
  typedText: string | null;
  brokenText: { text: string; diagnostics: Diagnostic[] } | null;
}

export type SyncEvent =
  /** The graph or the text was changed and nobody else has it yet. */
  | { type: "edited" }
  | { type: "typed"; text: string }
  /** Text that is not the document's, from the server or an earlier visit: it is read before anything else. */
  | { type: "opened"; text: string }
  /** What was typed is the document now, or was given up. */
  | { type: "settled" }
  | { type: "unreadable"; text: string; diagnostics: Diagnostic[] }
  | { type: "checking" }
  | { type: "checked"; check: CheckAnswer; text: string | null }
  | { type: "saving" }
  | { type: "saved"; revision: string; at: number | null }
  /** The server cannot write the graph as text, or does not take it. */
  | { type: "refused"; message: string }
  | { type: "met"; theirs: Loop }
  /** Mine is to be saved over what is there, or is what an earlier visit left. */
  | { type: "rebased"; revision: string }
  /** The server did not answer; `message` where it said why. */
  | { type: "failed"; message: string | null; isUnsaved: boolean };

export type SyncStore = StoreApi<SyncState>;

export function startState(revision: string): SyncState {
  return {
    save: "saved",
    saveMessage: null,
    savedAt: null,
    revision,
    conflict: null,
    checkStatus: "idle",
    check: null,
    checkedText: null,
    lastRead: null,
    typedText: null,
    brokenText: null,
  };
}

export function createSyncStore(revision: string): SyncStore {
  return createStore<SyncState>()(() => startState(revision));
}

export function nextState(state: SyncState, event: SyncEvent): SyncState {
  switch (event.type) {
    case "edited":
      return withSave(state, "unsaved");
    case "typed":
      return { ...withSave(state, "unsaved"), typedText: event.text };
    case "opened": {
      const brokenText = { text: event.text, diagnostics: [] };
      return { ...state, typedText: event.text, brokenText, checkStatus: "idle" };
    }
    case "settled":
      return { ...state, typedText: null, brokenText: null, checkStatus: "idle" };
    case "unreadable": {
      const { text, diagnostics } = event;
      const brokenText = { text, diagnostics };
      // What was checked last is the loop still.
      const checkStatus = state.check === null ? "idle" : "done";
      return { ...withSave(state, "unsaved"), typedText: null, brokenText, checkStatus };
    }
    case "refused":
      return withSave(state, "refused", event.message);
    case "checking":
      return { ...state, checkStatus: "checking" };
    case "checked": {
      const { check, text } = event;
      // A loop without errors that costs nothing is empty: what it cost before is of no interest.
      const isTold = check.estimate !== null || check.report.ok;
      const lastRead = isTold ? check : state.lastRead;
      return { ...state, checkStatus: "done", check, checkedText: text, lastRead };
    }
    case "saving":
      return { ...withSave(state, "saving"), checkStatus: "checking" };
    case "saved":
      return {
        ...state,
        save: pendingText(state) === null ? "saved" : "unsaved",
        saveMessage: null,
        savedAt: event.at ?? state.savedAt,
        revision: event.revision,
        conflict: null,
      };
    case "met":
      return { ...state, save: "conflict", saveMessage: null, conflict: event.theirs };
    case "rebased":
      return {
        ...state,
        save: "unsaved",
        saveMessage: null,
        conflict: null,
        revision: event.revision,
      };
    case "failed": {
      const failed: SyncState = { ...state, checkStatus: "offline" };
      const isKept = event.isUnsaved || state.typedText !== null;
      return isKept ? withSave(failed, "offline", event.message) : failed;
    }
  }
}

function withSave(
  state: SyncState,
  save: SaveStatus,
  saveMessage: string | null = null,
): SyncState {
  return state.save === "conflict" ? state : { ...state, save, saveMessage };
}

export function pendingText({ typedText, brokenText }: SyncState): string | null {
  return typedText ?? brokenText?.text ?? null;
}
