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
