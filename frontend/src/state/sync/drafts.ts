/**
 * Unsaved work in the browser's own database, so that nothing is lost offline or in a crash: one entry for
 * each loop and tab, so that no tab removes what only another one has.
 */
import { del, get, keys, set } from "idb-keyval";
import type { LoopDocument } from "@/document/types";

/**
 * A name of this tab that lives through a reload.
 *
 * The browser hands `sessionStorage` on to a copy of a tab, so the name lies there only while the page is
 * away: a copy of a living tab finds none and takes a new one.
 */
const KEY = "coloop.tab";

export function openTab(): string {
  const kept = takeKept();
  const tab = kept ?? newName();
  globalThis.addEventListener?.("pagehide", () => keep(tab));
  // A page that comes back from the browser's cache is the same page.
  globalThis.addEventListener?.("pageshow", takeKept);
  return tab;
}

function newName(): string {
  const words = crypto.getRandomValues(new Uint32Array(2));
  return [...words].map((word) => word.toString(36)).join("");
}

function takeKept(): string | null {
  try {
    const tab = sessionStorage.getItem(KEY);
    sessionStorage.removeItem(KEY);
    return tab;
  } catch {
    return null;
  }
}

function keep(tab: string): void {
  try {
    sessionStorage.setItem(KEY, tab);
  } catch {
    // A tab without storage is a new one after a reload.
  }
}

/** What was sent to be saved: the text, and the document that it shall say where the text was older. */
export interface Sent {
  yaml: string;
  document: LoopDocument | null;
}

export interface Draft {
  document: LoopDocument;
  text: string;
  brokenText: string | null;
  revision: string;
  base?: LoopDocument | undefined;
  sent?: readonly Sent[] | undefined;
  at: number;
}

export type DraftStore = ReturnType<typeof draftsOf>;

/** A browser that refuses storage has no drafts; editing goes on. */
export function draftsOf(tab: string) {
  const own = (loop: string) => `${folder(loop)}${tab}`;
  return {
    /** What this tab has of the loop, or else the newest that any tab left; from then on it is this tab's. */
    read: (loop: string) => takeDraft(folder(loop), own(loop)).catch(() => undefined),
    write: (loop: string, draft: Draft) => set(own(loop), draft).catch(() => {}),
    remove: (loop: string) => del(own(loop)).catch(() => {}),
  };
}

export const TAB = openTab();

export const browserDrafts = draftsOf(TAB);

function folder(loop: string): string {
  return `coloop.draft.${loop}.`;
}

async function takeDraft(prefix: string, own: string): Promise<Draft | undefined> {
  const mine = await get<Draft>(own);
  if (mine) return mine;
  let newest: { key: string; draft: Draft } | null = null;
  for (const key of await keys<string>()) {
    if (!String(key).startsWith(prefix)) continue;
    const draft = await get<Draft>(key);
    if (draft && (newest === null || draft.at > newest.draft.at)) newest = { key, draft };
  }
  if (newest === null) return undefined;
  // Written before the other goes: a crash in between leaves two, not none.
  await set(own, newest.draft);
  await del(newest.key);
  return newest.draft;
}
