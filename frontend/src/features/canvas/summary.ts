/** What stands beside the kind of a node: the values that its kind calls so, most telling first. Pure. */
import type { Catalog, Json } from "@/api/types";
import { fieldAt } from "@/document/fieldAt";
import type { LoopDocument } from "@/document/types";
import { type CardValue, placesAt } from "@/graph/cardValues";
import { formatName } from "@/lib/format";

const MAX_WORDS = 2;
const LONGEST = 40;

const isShown = (word: Json): word is string =>
  typeof word === "string" && word !== "" && word.length <= LONGEST;

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
