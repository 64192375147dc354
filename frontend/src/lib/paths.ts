/**
 * Paths into plain JSON: `nodes.actor.training.optimizer.lr` as a list of keys.
 *
 * A dot inside of a key needs no mark where the key is there: the longest key that fits is taken. Where
 * keys are paths themselves (a phase's overrides) all that follows is one key. A backslash before a dot
 * settles it. The service reads paths the same way.
 * Pure; a path that leads nowhere reads as undefined.
 */
import type { Json, JsonObject } from "@/api/types";

export type Path = readonly (string | number)[];

/** Without a root, what looks like a place in a list is one. */
export function parsePath(text: string, root?: unknown): (string | number)[] {
  const path: (string | number)[] = [];
  let words = splitPath(text);
  let here = root;
  while (words.length > 0) {
    const [word = ""] = words;
    const count = isObject(here)
      ? wordsOfKey(here, words, path)
      : isOfPaths(path)
        ? words.length
        : 1;
    const key = words.slice(0, count).join(".");
    const part = count === 1 && !isObject(here) && /^\d+$/.test(word) ? Number(word) : key;
    path.push(part);
    words = words.slice(count);
    here = readPath(here, [part]);
  }
  return path;
}

function splitPath(text: string): string[] {
  const words = text.match(/(?:[^.\\]|\\.)+/g) ?? [];
  return words.map((word) => word.replaceAll(/\\(.)/g, "$1"));
}

/** Whether the keys at a place are paths themselves. */
function isOfPaths(path: Path): boolean {
  return path[0] === "schedule" && path.at(-1) === "set";
}

function wordsOfKey(here: object, words: readonly string[], path: Path): number {
  const ofPaths = isOfPaths(path);
  if (!ofPaths && (words[0] ?? "") in here) return 1;
  for (let count = words.length; count > 0; count -= 1) {
    if (words.slice(0, count).join(".") in here) return count;
  }
  return ofPaths ? words.length : 1;
}

export function joinPath(path: Path): string {
  return path.join(".");
}

export function readPath(root: unknown, path: Path): Json | undefined {
  let value: unknown = root;
  for (const key of path) {
    if (value === null || typeof value !== "object") return undefined;
    value = (value as Record<string | number, unknown>)[key];
  }
  return value as Json | undefined;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Writes into a draft, making the objects on the way. */
export function writePath(root: object, path: Path, value: Json | undefined): void {
  let at = root as Record<string | number, unknown>;
  for (const [index, key] of path.slice(0, -1).entries()) {
    const next = at[key];
    if (next === null || typeof next !== "object") {
      at[key] = typeof path[index + 1] === "number" ? [] : {};
    }
    at = at[key] as Record<string | number, unknown>;
  }
  const last = path.at(-1);
  if (last !== undefined) at[last] = value;
}

/** Writes a value, or removes it where it is `undefined`. */
export function setPath(root: object, path: Path, value: Json | undefined, keep?: number): void {
  if (value === undefined) removePath(root, path, keep);
  else writePath(root, path, value);
}

/**
 * Removes the value and those parents, down to `keep` keys, that are empty without it. True where the object at the
 * beginning of the path lost its key.
 */
export function removePath(root: unknown, [key, ...rest]: Path, keep = 0): boolean {
  if (typeof root !== "object" || root === null || key === undefined) return false;
  const holder = root as Record<string | number, unknown>;
  if (rest.length > 0) {
    if (!removePath(holder[key], rest, keep - 1)) return false;
    const child = holder[key];
    if (keep > 0 || !isObject(child) || Object.keys(child).length > 0) return false;
  }
  if (Array.isArray(root)) {
    root.splice(Number(key), 1);
    return false;
  }
  delete holder[key];
  return true;
}

/** A key that is undefined is one that is not there. */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [definedEntries(a), new Map(definedEntries(b))];
  return (
    left.length === right.size && left.every(([key, value]) => deepEqual(value, right.get(key)))
  );
}

function definedEntries(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, item]) => item !== undefined);
}
