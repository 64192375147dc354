/** What stands beside the kind of a node: the values that its kind calls so, most telling first. Pure. */
import type { Json, KindInfo } from "@/api/types";
import { valuesAt } from "@/document/telling";

const MAX_WORDS = 2;
const LONGEST = 40;

export function summarise(kind: Pick<KindInfo, "summary"> | undefined, node: Json): string {
  const words = (kind?.summary ?? [])
    .flatMap((path) => valuesAt(node, path.split(".")))
    .filter((word): word is string => typeof word === "string")
    .filter((word) => word !== "" && word.length <= LONGEST);
  return [...new Set(words)].slice(0, MAX_WORDS).join(" · ");
}
