/** Where else stands what is selected. Pure. */
import type { CodeState } from "./CodeModel";

const MOST = 100;

export function repeatsOf({ text, selected }: CodeState, first: number, end: number): number[] {
  const [from, to] = selected;
  const wanted = text.slice(from, to);
  if (wanted.trim() === "" || wanted.includes("\n") || wanted.length > 200) return [];
  const found: number[] = [];
  let at = text.indexOf(wanted, first);
  while (at >= 0 && at <= end && found.length < MOST) {
    if (at !== from) found.push(at);
    at = text.indexOf(wanted, at + wanted.length);
  }
  return found;
}
