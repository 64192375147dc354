/** The values that a node shows on its card: which ones its kind says, what they are now, how they are said. Pure. */
import type { Catalog, Json, KindInfo } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { fieldAt } from "@/document/fieldAt";
import { poolOf, poolPaths } from "@/document/pools";
import type { LoopDocument } from "@/document/types";
import { formatCount, formatName, formatWhole } from "@/lib/format";
import { isObject, type Path, readPath } from "@/lib/paths";

const ANY = "*";

export interface CardValue {
  label: string;
  path: Path;
  field: Field | null;
  value: Json | undefined;
  text: string;
}

/** The first path of each value at which something is set, else the first that has a default. */
export function cardValues(catalog: Catalog, document: LoopDocument, id: string): CardValue[] {
  const node = document.nodes[id];
  const kind = catalog.kinds[node?.kind ?? ""];
  if (!node || !kind) return [];
  return [...valuesOfKind(catalog, document, id, kind), ...poolsOfParts(catalog, document, id)];
}

function poolsOfParts(catalog: Catalog, document: LoopDocument, id: string): CardValue[] {
  const node = document.nodes[id];
  const own = poolOf(catalog, document, id);
  return poolPaths(catalog, node?.kind).flatMap((path) => {
    if (path.length === 1) return [];
    const value = readPath(node, path);
    return typeof value !== "string" || value === own
      ? []
      : [cardValue(catalog, document, id, `${path[0]} pool`, { path, value }, value)];
  });
}

function cardValue(
  catalog: Catalog,
  document: LoopDocument,
  id: string,
  label: string,
  { path, value }: PlacedValue,
  text: string,
): CardValue {
  const field = fieldAt(catalog, document, ["nodes", id, ...path]);
  return { label, path, field: isPlain(field) ? field : null, value, text };
}

function valuesOfKind(
  catalog: Catalog,
  document: LoopDocument,
  id: string,
  kind: KindInfo,
): CardValue[] {
  const node = document.nodes[id];
  return kind.card_fields.flatMap(({ label, paths }): CardValue[] => {
    const parts = paths.map((path) => path.split("."));
    const path = parts.find((one) => valuesAt(node, one).length > 0);
    if (path?.includes(ANY)) {
      const text = valuesAt(node, path).map(valueText).join(", ");
      return [
        { label, path: path.slice(0, path.indexOf(ANY)), field: null, value: undefined, text },
      ];
    }
    if (path) {
      const value = readPath(node, path) as Json;
      return [cardValue(catalog, document, id, label, { path, value }, valueText(value))];
    }
    for (const one of parts) {
      if (one.includes(ANY) || !holds(catalog, document, id, one)) continue;
      const field = fieldAt(catalog, document, ["nodes", id, ...one]);
      const fallback = field?.fallback;
      if (!isPlain(field) || fallback === undefined || fallback === null) continue;
      return [{ label, path: one, field, value: undefined, text: valueText(fallback) }];
    }
    return [];
  });
}

/** Defaults inside of something hold where it is set, or where it is never without a value. */
function holds(catalog: Catalog, document: LoopDocument, id: string, path: readonly string[]) {
  for (let length = 1; length < path.length; length += 1) {
    const around = path.slice(0, length);
    if (isObject(readPath(document.nodes[id], around))) continue;
    const field = fieldAt(catalog, document, ["nodes", id, ...around]);
    if (field?.shape !== "object" || field.isNullable) return false;
  }
  return true;
}

function isPlain(field: Field | null): field is Field {
  return field !== null && ["text", "number", "choice", "flag"].includes(field.shape);
}

export function valueText(value: Json): string {
  if (typeof value === "number" && Number.isInteger(value) && Math.abs(value) >= 1000) {
    return value < 1e15 ? formatWhole(value) : formatCount(value);
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "object")
    return Array.isArray(value) ? value.map((one) => valueText(one ?? null)).join(", ") : "set";
  return sayText(String(value));
}

const CODE = /^(import|from|def|class|async|@|#|""")/;

/** The first line; of code what it says of itself, or how long it is. */
function sayText(text: string): string {
  const lines = text.trim().split("\n");
  const [first = ""] = lines;
  if (lines.length === 1 || !CODE.test(first)) return first;
  const told = /"""\s*([^\n]+?)\s*("""|\n)/.exec(text)?.[1] ?? /^\s*#\s*(\w.+)$/m.exec(text)?.[1];
  return told ?? `${lines.length} lines`;
}

/** All values that a path with `*` leads to; text and numbers only. */
function valuesAt(value: Json | undefined, keys: readonly string[]): Json[] {
  return placesAt(value, keys).map((place) => place.value);
}

interface PlacedValue {
  path: Path;
  value: Json;
}

export function placesAt(
  value: Json | undefined,
  keys: readonly string[],
  at: Path = [],
): PlacedValue[] {
  const [key, ...rest] = keys;
  if (key === undefined) {
    return value === undefined || value === null || typeof value === "object" || value === ""
      ? []
      : [{ path: at, value }];
  }
  if (Array.isArray(value)) {
    // What may be one or several counts as one.
    return value.flatMap((item, index) =>
      placesAt(item, key === ANY ? rest : keys, [...at, index]),
    );
  }
  if (key === ANY && typeof value === "string") return placesAt(value, rest, at);
  if (!isObject(value)) return [];
  if (key !== ANY) return placesAt(value[key], rest, [...at, key]);
  return Object.entries(value).flatMap(([name, item]) => placesAt(item, rest, [...at, name]));
}

export interface Learning {
  algorithm: CardValue | null;
  more: number;
  rate: CardValue | null;
}

export function learningValues(catalog: Catalog, document: LoopDocument, id: string): Learning {
  const node = document.nodes[id];
  const learning = catalog.kinds[node?.kind ?? ""]?.learning;
  if (!node || !learning) return { algorithm: null, more: 0, rate: null };
  const found = learning.names.flatMap((path) => placesAt(node, path.split(".")));
  const algorithms = Object.values(catalog.algorithms).flat();
  const titles = new Map(algorithms.map(({ name, title }) => [name, title]));
  const words = [...new Set(found.map(({ value }) => titles.get(String(value)) ?? String(value)))];
  const [first] = found;
  const [rate] = placesAt(node, learning.rate.split("."));
  const own = (label: string, placed: PlacedValue, text: string) =>
    cardValue(catalog, document, id, label, placed, text);
  return {
    algorithm: first ? own("algorithm", first, words[0] ?? "") : null,
    more: Math.max(0, words.length - 1),
    rate: rate ? own("learning rate", rate, sayRate(rate.value)) : null,
  };
}

/** How a node learns, in a few words: "GRPO · lr 1e-6"; empty where it does not say. */
export function learningText({ algorithm, more, rate }: Learning): string {
  const name = algorithm && more > 0 ? `${algorithm.text} +${more}` : algorithm?.text;
  return [name, rate && `lr ${rate.text}`].filter(Boolean).join(" · ");
}

function sayRate(rate: Json): string {
  return typeof rate === "number" && rate > 0 && rate < 0.01
    ? rate.toExponential().replace("e-0", "e-")
    : String(rate);
}

const MAX_WORDS = 2;
const LONGEST = 40;

const isShown = (word: Json): word is string =>
  typeof word === "string" && word !== "" && word.length <= LONGEST;

/** What stands beside the kind of a node: the values that its kind calls so, most telling first. */
export function summaryValues(catalog: Catalog, document: LoopDocument, id: string): CardValue[] {
  const node = document.nodes[id];
  const found = new Map<string, CardValue>();
  for (const path of catalog.kinds[node?.kind ?? ""]?.summary ?? []) {
    for (const { path: at, value } of placesAt(node, path.split("."))) {
      if (!isShown(value) || found.has(value)) continue;
      const field = fieldAt(catalog, document, ["nodes", id, ...at]);
      const own = field?.shape === "text" ? field : null;
      const label = formatName(String(at[0])).toLowerCase();
      found.set(value, { label, path: at, field: own, value, text: value });
    }
  }
  return [...found.values()].slice(0, MAX_WORDS);
}
