/** Looking for a kind of node by what it is called, or by other words for it. Pure. */
import type { KindInfo } from "@/api/types";

/** Names come before other words, whole words before parts, and the help last. */
const RANKS = {
  name: 5,
  nameStart: 4,
  namePart: 3,
  word: 2.5,
  wordStart: 2,
  wordPart: 1,
  help: 0.5,
};

export function scoreKind(kind: KindInfo, search: string): number {
  const wish = search.trim().toLowerCase();
  if (wish === "") return 1;
  const whole = scoreWord(kind, wish);
  if (whole > 0 || !wish.includes(" ")) return whole;
  const scores = wish.split(/\s+/).map((word) => scoreWord(kind, word));
  return scores.includes(0) ? 0 : Math.min(...scores);
}

function scoreWord(kind: KindInfo, wish: string): number {
  const names = [kind.title, kind.kind].map((name) => name.toLowerCase());
  if (names.includes(wish)) return RANKS.name;
  if (names.some((name) => name.startsWith(wish))) return RANKS.nameStart;
  if (names.some((name) => name.includes(wish))) return RANKS.namePart;
  const words = kind.synonyms.map((word) => word.toLowerCase().replaceAll("_", " "));
  const plain = wish.replaceAll("_", " ");
  if (words.includes(plain)) return RANKS.word;
  if (words.some((word) => startsAWord(word, plain))) return RANKS.wordStart;
  if (words.some((word) => word.includes(plain))) return RANKS.wordPart;
  return startsAWord(kind.help.toLowerCase(), wish) ? RANKS.help : 0;
}

function startsAWord(text: string, wish: string): boolean {
  return text.startsWith(wish) || text.includes(` ${wish}`) || text.includes(`-${wish}`);
}
