/**
 * Loops that have an address and that the server does not have yet, kept in this browser: it is not asked for what
 * it cannot know. Shared between tabs, so that what one of them has saved is asked for in all of them.
 */
const KEY = "coloop.unsaved";
/** Presets are looked at and left; the newest are remembered. */
const MAX = 40;

/** Where a browser keeps nothing, as long as the page is open. */
let memory: readonly string[] = [];

function read(): readonly string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((id) => typeof id === "string") : [];
  } catch {
    return memory;
  }
}

function write(ids: readonly string[]): void {
  memory = ids.slice(-MAX);
  try {
    localStorage.setItem(KEY, JSON.stringify(memory));
  } catch {
    // Without storage the server is asked, and says that it has no such loop.
  }
}

export function rememberUnsaved(id: string): void {
  write([...read(), id]);
}

export function isUnsaved(id: string): boolean {
  return read().includes(id);
}

export function forgetUnsaved(id: string): void {
  const ids = read();
  if (ids.includes(id)) write(ids.filter((one) => one !== id));
}
