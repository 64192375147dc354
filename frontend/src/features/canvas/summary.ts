/** One line about a node's settings: the values that its kind calls telling, most telling first. Pure. */
import type { Json, KindInfo } from "@/api/types";
import { isObject } from "@/lib/paths";

const ANY = "*";
const MAX_WORDS = 3;
const LONGEST = 40;

export function summarise(kind: Pick<KindInfo, "summary"> | undefined, node: Json): string {
  const words = (kind?.summary ?? []).flatMap((path) => valuesAt(node, path.split(".")));
  const telling = words.filter((word) => word !== "" && word.length <= LONGEST);
  return [...new Set(telling)].slice(0, MAX_WORDS).join(" · ");
}

function valuesAt(value: Json | undefined, keys: readonly string[]): string[] {
  const [key, ...rest] = keys;
  if (key === undefined) return typeof value === "string" ? [value] : [];
  if (Array.isArray(value)) {
    // What may be one or several counts as one.
    return value.flatMap((item) => valuesAt(item, key === ANY ? rest : keys));
  }
  if (!isObject(value)) return [];
  if (key !== ANY) return valuesAt(value[key], rest);
  return Object.values(value).flatMap((item) => valuesAt(item, rest));
}
