/** One line about a node's settings, from the data alone: the names and types that the user chose. Pure. */
import type { Json } from "@/api/types";
import { isObject } from "@/lib/paths";

const TELLING = new Set([
  "type",
  "name",
  "task",
  "architecture",
  "path",
  "method",
  "of",
  "with",
  "rule",
]);
const MAX_WORDS = 3;

export function summarise(data: Json): string {
  const words: string[] = [];
  const visit = (value: Json | undefined, key: string) => {
    if (words.length > MAX_WORDS * 2) return;
    if (typeof value === "string") {
      if (TELLING.has(key) && value.length <= 40) words.push(value);
    } else if (Array.isArray(value)) {
      for (const item of value) visit(item, key);
    } else if (isObject(value)) {
      for (const [name, item] of Object.entries(value)) visit(item, name);
    }
  };
  visit(data, "");
  return [...new Set(words)].slice(0, MAX_WORDS).join(" · ");
}
