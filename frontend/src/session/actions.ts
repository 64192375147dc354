/**
 * One registry of everything the keyboard can do in the editor: the shortcut sheet, the command palette
 * and the key handler read it, so that they cannot disagree.
 */
export interface Action {
  id: string;
  label: string;
  /** "mod" is ⌘ on a Mac and Ctrl elsewhere. Several are alternatives. */
  keys: readonly string[];
  section: string;
  isEnabled?: () => boolean;
  run: () => void;
}

export const IS_MAC = typeof navigator !== "undefined" && /mac/i.test(navigator.platform);

export function showKeys(keys: string): string {
  return keys
    .split("+")
    .map((key) => NAMES[key] ?? (key.length === 1 ? key.toUpperCase() : key))
    .join(IS_MAC ? "" : "+");
}

const NAMES: Record<string, string> = {
  mod: IS_MAC ? "⌘" : "Ctrl",
  shift: IS_MAC ? "⇧" : "Shift",
  backspace: "⌫",
  delete: "Del",
  escape: "Esc",
  tab: "Tab",
  enter: "↵",
};

export function matchesKeys(event: KeyboardEvent, keys: string): boolean {
  const parts = keys.split("+");
  const key = parts.at(-1) ?? "";
  const wantsMod = parts.includes("mod");
  const wantsShift = parts.includes("shift");
  const hasMod = IS_MAC ? event.metaKey : event.ctrlKey;
  const hasOther = IS_MAC ? event.ctrlKey : event.metaKey;
  if (hasMod !== wantsMod || hasOther || event.altKey) return false;
  // A sign such as "?" needs shift on many keyboards; a letter says whether it does.
  const isLetter = /^[a-z]$/.test(key) || key.length > 1;
  if (isLetter && event.shiftKey !== wantsShift) return false;
  return event.key.toLowerCase() === key;
}

/** Typing in a field is not a command. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.closest(".cm-editor")) return true;
  const isText =
    target instanceof HTMLInputElement &&
    !["checkbox", "radio", "range", "button"].includes(target.type);
  return isText || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
