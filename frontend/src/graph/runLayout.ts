/**
 * A loop as a run draws it. Cards show what their nodes do in the place of their values, are as small as that, and stand
 * nearer to each other than in the editor, in the same order: more of the graph is in sight beside charts and texts.
 * Pure.
 */
import type { Catalog } from "@/api/types";
import type { LoopDocument } from "@/document/types";
import { edgeKinds, isSided } from "./edgeKinds";
import { boxesOf, NODE_WIDTH } from "./geometry";

const BELOW = 32;
const LINE = 12;
const TIE = 36;
/** In which a rate stands beside nothing but its own line, and more for each line beside. */
const LABEL_ROOM = 84;
const LABEL_BESIDE = 20;
/** Cards that stood nearly on each other are moved apart one by one. */
const MAX_SCALE = 1.5;

interface Stack {
  x: number;
  y: number;
  width: number;
  height: number;
  gap: number;
  tops: ReadonlyMap<string, number>;
}

export function runLayout(catalog: Catalog, document: LoopDocument): LoopDocument {
  const drawn: LoopDocument = { ...document, isRunView: true };
  const stacks = stacksOf(catalog, drawn);
  const lefts = nearerAcross(stacks, linesAcross(catalog, drawn));
  const scale = leastScale(stacks);
  const top = Math.min(...stacks.map(({ y }) => y));
  const layout = { ...document.layout };
  for (const { x, y, tops } of stacks) {
    for (const [id, below] of tops) {
      const [own = x] = document.layout[id] ?? [];
      layout[id] = [lefts(x) + own - x, Math.round(top + (y - top) * scale) + below];
    }
  }
  return { ...drawn, layout };
}

function stacksOf(catalog: Catalog, document: LoopDocument): Stack[] {
  const { leaderOf } = edgeKinds(catalog, document);
  const gaps = gapsBelow(catalog, document);
  const boxes = new Map(boxesOf(catalog, document).map((box) => [box.id, box]));
  const followerOf = new Map([...leaderOf].map(([follower, leader]) => [leader, follower]));
  const isDocked = (follower: string, leader: string) => {
    const [lower, upper] = [boxes.get(follower), boxes.get(leader)];
    if (!lower || !upper) return false;
    const isBelow = lower.y >= upper.y + upper.height;
    return isBelow && lower.x < upper.x + upper.width && upper.x < lower.x + lower.width;
  };
  const stacks: Stack[] = [];
  for (const { id, x, y, width, height } of boxes.values()) {
    const leader = leaderOf.get(id);
    if (leader !== undefined && isDocked(id, leader)) continue;
    const follower = boxes.get(followerOf.get(id) ?? "");
    if (!follower || !isDocked(follower.id, id)) {
      const gap = gaps.get(id) ?? BELOW;
      stacks.push({ x, y, width, height, gap, tops: new Map([[id, 0]]) });
      continue;
    }
    const below = height + TIE;
    const tops = new Map([
      [id, 0],
      [follower.id, below],
    ]);
    const right = Math.max(x + width, follower.x + follower.width);
    const gap = Math.max(gaps.get(id) ?? BELOW, gaps.get(follower.id) ?? BELOW);
    stacks.push({ x, y, width: right - x, height: below + follower.height, gap, tops });
  }
  return stacks;
}

function gapsBelow(catalog: Catalog, document: LoopDocument): Map<string, number> {
  const gaps = new Map<string, number>();
  for (const { kind, from, to } of edgeKinds(catalog, document).edges) {
    if (kind !== "learning") continue;
    for (const { node } of [from, to]) {
      gaps.set(node, (gaps.get(node) ?? BELOW) + LINE);
    }
  }
  return gaps;
}

/** Where a left side goes: strips in which no card stands are as wide as the rates on the lines through them need. */
function nearerAcross(
  stacks: readonly Stack[],
  lines: readonly { from: number; to: number }[],
): (x: number) => number {
  const saved: { from: number; width: number }[] = [];
  let right = Number.POSITIVE_INFINITY;
  for (const { x, width } of stacks.toSorted((a, b) => a.x - b.x)) {
    const through = lines.filter(({ from, to }) => from < x && x <= to).length;
    const room = LABEL_ROOM + LABEL_BESIDE * Math.max(0, through - 1);
    if (x - right > room) saved.push({ from: x, width: x - right - room });
    right = Math.max(Number.isFinite(right) ? right : x, x + width);
  }
  return (x) => x - saved.reduce((sum, { from, width }) => (x >= from ? sum + width : sum), 0);
}

function linesAcross(catalog: Catalog, document: LoopDocument): { from: number; to: number }[] {
  return edgeKinds(catalog, document).edges.flatMap(({ kind, from: source, to: target }) => {
    const [from] = document.layout[source.node] ?? [];
    const [to] = document.layout[target.node] ?? [];
    return isSided(kind) && from !== undefined && to !== undefined ? [{ from, to }] : [];
  });
}

/** The least by which distances downward can be multiplied with every card free of those near above it, within reason. */
function leastScale(stacks: readonly Stack[]): number {
  let least = 0;
  for (const upper of stacks) {
    for (const lower of stacks) {
      const down = lower.y - upper.y;
      if (down <= 0 || !isNear(upper, lower)) continue;
      least = Math.max(least, (upper.height + upper.gap) / down);
    }
  }
  return Math.min(MAX_SCALE, least || 1);
}

function isNear(a: Stack, b: Stack): boolean {
  const room = NODE_WIDTH / 4;
  return a.x < b.x + b.width + room && b.x < a.x + a.width + room;
}
