/**
 * One registry of everything the keyboard can do in the editor: the shortcut sheet, the command palette
 * and the key handler read it, so that they cannot disagree.
 */
export interface Action {
  id: string;
  label: string;
  /** "mod" is ⌘ on a Mac and Ctrl elsewhere. Several are alternatives. */
  keys: readonly string[];
  scope?: Scope;
  section: string;
  isEnabled?: () => boolean;
  run: () => void;
}

/**
 * Where keys count, from the widest to the narrowest: also while text is typed; anywhere else; on the graph,
 * or where nothing has the focus.
 */
export type Scope = "always" | "page" | "canvas";

/** Makes actions of a section; the alternatives in `keys` are separated by spaces. */
export function inSection(section: string) {
  return (
    id: string,
    label: string,
    keys: string,
    run: () => void,
    more: Pick<Action, "scope" | "isEnabled"> = {},
  ): Action => ({ id, label, keys: keys.split(" ").filter(Boolean), section, run, ...more });
}

/** A key without a modifier that writes a sign: it can be switched off (WCAG 2.1.4). */
export function isSingleKey(keys: string): boolean {
  return keys.length === 1;
}

export function isInScope(target: EventTarget | null, scope: Scope, keys: string): boolean {
  if (scope === "always") return true;
  if (isTyping(target)) return false;
  if (isSingleKey(keys) && isWithin(target, TAKES_LETTERS)) return false;
  return scope === "page" || isCanvas(target);
}

const TAKES_LETTERS = '[role="listbox"], [role="combobox"], [role="menu"], [role="tree"]';

const CONTROLS =
  'button, a, input, select, textarea, [role="slider"], [role="checkbox"], [role="switch"], [role="tab"]';

function isCanvas(target: EventTarget | null): boolean {
  if (!(target instanceof Element) || target === target.ownerDocument.body) return true;
  return isWithin(target, ".react-flow") && !isWithin(target, CONTROLS);
}

function isWithin(target: EventTarget | null, selector: string): boolean {
  return target instanceof Element && target.closest(selector) !== null;
}

const IS_MAC = typeof navigator !== "undefined" && /mac/i.test(navigator.platform);

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
  f2: "F2",
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

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable) return true;
  const isText =
    target instanceof HTMLInputElement &&
    !["checkbox", "radio", "range", "button"].includes(target.type);
  return isText || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
