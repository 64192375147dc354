/**
 * Loops that have an address and that the server does not have yet, kept in this browser: it is not asked for what
 * it cannot know. Shared between tabs, so that what one of them has saved is asked for in all of them.
 */
import { stored } from "@/api/stored";

const kept = stored("coloop.unsaved");
/** Presets are looked at and left; the newest are remembered. */
const MAX = 40;

function read(): readonly string[] {
  try {
    const ids: unknown = JSON.parse(kept.read() ?? "[]");
    return Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : [];
  } catch {
    return [];
  }
}

function write(ids: readonly string[]): void {
  kept.write(JSON.stringify(ids.slice(-MAX)));
}

export function rememberUnsaved(id: string): void {
  write([...read(), id]);
}

export function isUnsaved(id: string): boolean {
  return read().includes(id);
}

export function forgetUnsaved(id: string): void {
  const ids = read();
  if (ids.includes(id)) write(ids.filter((other) => other !== id));
}

/**
 * Where a preset is looked at: the address that its loop will have, and the preset it is made from. The id is
 * chosen here, so that the address stays when the first change saves the loop.
 */
const PRESET = "preset";

export function presetAddress(name: string): string {
  const id = newId();
  rememberUnsaved(id);
  return `/loops/${id}?${new URLSearchParams({ [PRESET]: name })}`;
}

export function presetOf(search: string): string | null {
  return new URLSearchParams(search).get(PRESET);
}

/** A page of the loop that is shown at this address; a preset that nobody has changed yet stays one. */
export function loopAddress(id: string, page: "" | "/rewards", search: string): string {
  const preset = presetOf(search);
  const asked = preset === null ? "" : `?${new URLSearchParams({ [PRESET]: preset })}`;
  return `/loops/${id}${page}${asked}`;
}

function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
