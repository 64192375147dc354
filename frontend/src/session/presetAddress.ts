/**
 * Where a preset is looked at: the address that its loop will have, and the preset it is made from. The id is
 * chosen here, so that the address stays when the first change saves the loop.
 */
import { rememberUnsaved } from "./unsaved";

const PRESET = "preset";

export function presetAddress(name: string): string {
  const id = newId();
  rememberUnsaved(id);
  return `/loops/${id}?${new URLSearchParams({ [PRESET]: name })}`;
}

/** The preset that an address speaks of, or null. */
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
