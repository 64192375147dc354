/** Places of what is searched for in a text. Pure. */
export interface Query {
  text: string;
  isCase: boolean;
  isWord: boolean;
  isPattern: boolean;
}

export interface Hit {
  from: number;
  to: number;
  /** What takes its place. */
  insert: (replacement: string) => string;
}

const MOST = 5000;

/** Null where the pattern cannot be read. */
export function patternOf({ text, isCase, isWord, isPattern }: Query): RegExp | null {
  const source = isPattern ? text : escaped(text).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const whole = isWord ? `(?<![\\p{L}\\p{N}_])(?:${source})(?![\\p{L}\\p{N}_])` : source;
  try {
    return new RegExp(whole, `gmu${isCase ? "" : "i"}`);
  } catch {
    return null;
  }
}

export function hitsOf(text: string, query: Query): Hit[] {
  const pattern = query.text === "" ? null : patternOf(query);
  if (!pattern) return [];
  const hits: Hit[] = [];
  for (const found of text.matchAll(pattern)) {
    if (found[0] === "") continue;
    const insert = (replacement: string) =>
      query.isPattern
        ? escaped(replacement).replace(/\$([$&\d])/g, (_, sign) =>
            sign === "$" ? "$" : (found[sign === "&" ? 0 : Number(sign)] ?? ""),
          )
        : escaped(replacement);
    hits.push({ from: found.index, to: found.index + found[0].length, insert });
    if (hits.length === MOST) break;
  }
  return hits;
}

/** The next one from here, around the end. */
export function nextHit(hits: readonly Hit[], [from, to]: readonly [number, number], step: 1 | -1) {
  const after =
    step > 0 ? hits.find((hit) => hit.from >= to) : hits.findLast((hit) => hit.to <= from);
  return after ?? (step > 0 ? hits[0] : hits.at(-1)) ?? null;
}

/** Signs that have no key of their own in a field of one line. */
function escaped(text: string): string {
  const signs: Record<string, string> = { n: "\n", r: "\r", t: "\t", "\\": "\\" };
  return text.replace(/\\([nrt\\])/g, (_, sign: string) => signs[sign] ?? sign);
}
