/** Unsaved work in the browser's own database, one entry a loop, so that nothing is lost offline or in a crash. */
import { del, get, set } from "idb-keyval";
import type { LoopDocument } from "../types";

export interface Draft {
  document: LoopDocument;
  text: string;
  /** Text that the server could not read, as it was typed. */
  brokenText: string | null;
  revision: string;
  at: number;
}

export interface DraftStore {
  read: (loop: string) => Promise<Draft | undefined>;
  write: (loop: string, draft: Draft) => Promise<void>;
  remove: (loop: string) => Promise<void>;
}

const key = (loop: string) => `coloop.draft.${loop}`;

/** A browser that refuses storage has no drafts; editing goes on. */
export const browserDrafts: DraftStore = {
  read: (loop) => get<Draft>(key(loop)).catch(() => undefined),
  write: (loop, draft) => set(key(loop), draft).catch(() => {}),
  remove: (loop) => del(key(loop)).catch(() => {}),
};
