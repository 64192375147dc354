/** Looking for a kind of node by what it is called, or by other words for it. Pure. */
import type { Block, KindInfo } from "@/api/types";

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

/** Blocks with all words of a search in their title, help or names of nodes; those with them in the title first. */
export function searchBlocks(blocks: readonly Block[], search: string): Block[] {
  const words = search.trim().toLowerCase().split(/\s+/);
  const has = (text: string) => words.every((word) => text.toLowerCase().includes(word));
  const told = ({ title, description, nodes }: Block) =>
    [title, description, ...Object.keys(nodes)].join(" ");
  const found = blocks.filter((block) => has(told(block)));
  return found.toSorted((a, b) => Number(has(b.title)) - Number(has(a.title)));
}

/** Whether a search is the beginning of a block's title, and no name of a kind and no other word for one. */
export function meansBlock(
  blocks: readonly Block[],
  kinds: readonly KindInfo[],
  search: string,
): boolean {
  const wish = search.trim().toLowerCase();
  if (wish === "" || !blocks.some(({ title }) => title.toLowerCase().startsWith(wish)))
    return false;
  return kinds.every((kind) => scoreKind(kind, search) < RANKS.word);
}
