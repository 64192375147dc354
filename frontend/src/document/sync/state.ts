/** What the page knows of the server's view of an open loop: is it saved, does it check, does its text read. */
import { createStore, type StoreApi } from "zustand/vanilla";
import type { CheckAnswer, Diagnostic, Loop } from "@/api/types";

export type SaveStatus = "saved" | "unsaved" | "saving" | "offline" | "conflict" | "refused";

export type CheckStatus = "idle" | "checking" | "done" | "offline";

export interface SyncState {
  save: SaveStatus;
  saveMessage: string | null;
  savedAt: number | null;
  revision: string;
  /** The other version, while two disagree. */
  conflict: Loop | null;
  checkStatus: CheckStatus;
  check: CheckAnswer | null;
  /** Text as it is typed, until the server has read it. */
  typedText: string | null;
  /** Typed text that does not read, and why. */
  brokenText: { text: string; diagnostics: Diagnostic[] } | null;
}

export type SyncStore = StoreApi<SyncState>;

export function createSyncStore(revision: string): SyncStore {
  return createStore<SyncState>()(() => ({
    save: "saved",
    saveMessage: null,
    savedAt: null,
    revision,
    conflict: null,
    checkStatus: "idle",
    check: null,
    typedText: null,
    brokenText: null,
  }));
}

/** The text that the user sees where it is not the document's, or null. */
export function pendingText({ typedText, brokenText }: SyncState): string | null {
  return typedText ?? brokenText?.text ?? null;
}
