/**
 * The graph of compact cards. Places and sizes of the loop are stretched along the axis on which the window has room
 * left, so that cards become as large as they can be; cards take some of the room beside them, as nothing is written
 * there. Edges between the same two cards are one line. Pure.
 */

import { isSided } from "./edgeKinds";
import { textWidth } from "./geometry";
import type { Measures, RouteEdge } from "./routes";
import type { Around, Box } from "./shapes";

/** How the loop's places and sizes become those of a graph of compact cards. */
export interface Squeeze {
  /** A place of the loop times these is its place on the canvas. */
  x: number;
  y: number;
  /** The same for the size of a card, which also takes some of the room around it. */
  width: number;
  height: number;
  /** The least between a card and the one below it. */
  gap: number;
  /** The zoom at which all of the graph is seen. */
  zoom: number;
  /** From one track of the learning lane to the next, in pixels of the window. */
  track: number;
}

/** Text of compact cards and labels, in pixels of the window. */
const COMPACT_TEXT = 11;
const LABEL_HEIGHT = 17;
/** Labels of what is learned are read where their tracks are as far apart. */
const MIN_LABELLED_TRACK = 18;
/** Around the text of a label, with the sign of learning. */
const LABEL_AROUND = 30;
/** In pixels of the window: above the lane of learning, and its name. */
const LANE_GAP = 10;
const LANE_HEAD = 22;
/** How much further ends of lines are apart than on whole cards, at the zoom of 1. */
const SOCKETS = 0.5;

/** What is kept between two cards, in pixels of the canvas for its lines and in pixels of the window. */
const GAP = { across: { canvas: 64, window: 20 }, down: { canvas: 26, window: 9 } };
/** Of a frame of a pool around cards, in pixels of the window. */
const FRAME = { side: 5, head: 15 };
const MAX_GROWTH = 1.6;
/** A card of this height has room for a name and a number. */
const MIN_HEIGHT = 34;

export interface Dot {
  port: string;
  isTarget: boolean;
  top: number;
}

export interface CompactEdges {
  edges: RouteEdge[];
  /** By the edge that is drawn for them, all edges that it stands for; several. */
  bundles: ReadonlyMap<string, readonly string[]>;
  dots: ReadonlyMap<string, readonly Dot[]>;
}

/** The cards at their places; low ones take what room is below them, to show their name. */
export function squeezeBoxes(boxes: readonly Box[], squeeze: Squeeze): Box[] {
  const cards = boxes.map(({ id, x, y, width, height }) => ({
    id,
    x: x * squeeze.x,
    y: y * squeeze.y,
    width: width * squeeze.width,
    height: height * squeeze.height,
  }));
  const wish = MIN_HEIGHT / squeeze.zoom;
  return cards.map((card) => {
    if (card.height >= wish) return card;
    const below = cards.filter(
      ({ x, y, width }) =>
        y >= card.y + card.height && x < card.x + card.width && card.x < x + width,
    );
    const free = Math.min(...below.map(({ y }) => y - card.y)) - squeeze.gap;
    return { ...card, height: Math.max(card.height, Math.min(wish, free)) };
  });
}

/**
 * @param words what a line of learning says of itself
 */
export function compactEdges(
  edges: readonly RouteEdge[],
  boxes: readonly Box[],
  squeeze: Squeeze,
  words: (key: string) => string,
): CompactEdges {
  const groups = new Map<string, RouteEdge[]>();
  for (const edge of edges) {
    const ends = `${edge.kind} ${edge.source} ${edge.target}`;
    groups.set(ends, [...(groups.get(ends) ?? []), edge]);
  }
  const bundles = new Map<string, readonly string[]>();
  const leads = [...groups.values()].map((group): RouteEdge => {
    const lead = group[0] as RouteEdge;
    if (group.length > 1) {
      bundles.set(
        lead.key,
        group.map(({ key }) => key),
      );
    }
    return { ...lead, label: labelWidth(lead, group.length, squeeze, words) / squeeze.zoom };
  });
  const dots = placeDots(leads, new Map(boxes.map((box) => [box.id, box.height])));
  const topOf = (node: string, port: string, isTarget: boolean) =>
    dots.get(node)?.find((dot) => dot.port === port && dot.isTarget === isTarget)?.top;
  return {
    bundles,
    dots,
    edges: leads.map((lead) => ({
      ...lead,
      sourceTop: topOf(lead.source, lead.sourcePort, false) ?? lead.sourceTop,
      targetTop: topOf(lead.target, lead.targetPort, true) ?? lead.targetTop,
    })),
  };
}

function labelWidth(
  { key, kind }: RouteEdge,
  count: number,
  { track }: Squeeze,
  words: (key: string) => string,
): number {
  if (kind === "learning") {
    if (track < MIN_LABELLED_TRACK) return 0;
    const text = count > 1 ? `${words(key)} ${bundleText(count)}` : words(key);
    return textWidth(text, COMPACT_TEXT) + LABEL_AROUND;
  }
  return count > 1 ? textWidth(bundleText(count), COMPACT_TEXT) + 10 : 0;
}

export function bundleText(count: number): string {
  return `×${count}`;
}

/** Along each side as far apart as can be, in the order of the ports. */
function placeDots(
  leads: readonly RouteEdge[],
  heights: ReadonlyMap<string, number>,
): Map<string, Dot[]> {
  const sides = new Map<string, Map<string, number>>();
  const note = (side: string, port: string, top: number) => {
    const ports = sides.get(side) ?? new Map<string, number>();
    sides.set(side, ports.set(port, top));
  };
  for (const { kind, source, target, sourcePort, targetPort, sourceTop, targetTop } of leads) {
    if (!isSided(kind)) continue;
    note(`< ${source}`, sourcePort, sourceTop);
    note(`> ${target}`, targetPort, targetTop);
  }
  const dots = new Map<string, Dot[]>();
  for (const [side, ports] of sides) {
    const node = side.slice(2);
    const height = heights.get(node) ?? 0;
    const ordered = [...ports].toSorted(([, a], [, b]) => a - b);
    const own = ordered.map(([port], index): Dot => {
      const top = ((index + 1) * height) / (ordered.length + 1);
      return { port, isTarget: side.startsWith(">"), top };
    });
    dots.set(node, [...(dots.get(node) ?? []), ...own]);
  }
  return dots;
}

export function compactMeasures({ zoom, track }: Squeeze): Measures {
  return {
    laneGap: LANE_GAP / zoom,
    laneHead: LANE_HEAD / zoom,
    track: track / zoom,
    labelHeight: LABEL_HEIGHT / zoom,
    sockets: Math.max(1, SOCKETS / zoom),
  };
}

export function trackIn(height: number): number {
  if (height >= 520) return 20;
  return height >= 400 ? MIN_LABELLED_TRACK : Math.max(7, height / 36);
}

export function frameAround({ zoom }: Squeeze): Around {
  return { side: FRAME.side / zoom, top: FRAME.head / zoom, bottom: FRAME.side / zoom };
}

/** By how much all cards can grow at their places, so that none comes too near to another. */
export function growth(
  boxes: readonly Box[],
  by: { x: number; y: number; zoom: number },
  isFramed: boolean,
): Pick<Squeeze, "width" | "height" | "gap"> {
  const [beside, above] = isFramed ? [2 * FRAME.side, FRAME.side + FRAME.head] : [0, 0];
  const least = {
    across: Math.max(GAP.across.canvas, (GAP.across.window + beside) / by.zoom),
    down: Math.max(GAP.down.canvas, (GAP.down.window + above) / by.zoom),
  };
  let [wide, high] = [MAX_GROWTH, MAX_GROWTH];
  const placed = boxes.map((box) => ({
    left: box.x * by.x,
    top: box.y * by.y,
    width: box.width * by.x,
    height: box.height * by.y,
  }));
  const pairs = placed.flatMap((one) =>
    placed.filter((other) => other !== one).map((other) => [one, other] as const),
  );
  for (const [one, other] of pairs) {
    const isBeside = one.top < other.top + other.height && other.top < one.top + one.height;
    if (!isBeside || other.left <= one.left) continue;
    wide = Math.min(wide, (other.left - one.left - least.across) / one.width);
  }
  wide = Math.max(1, wide);
  for (const [one, other] of pairs) {
    const isAbove =
      one.left < other.left + other.width * wide && other.left < one.left + one.width * wide;
    if (!isAbove || other.top <= one.top) continue;
    high = Math.min(high, (other.top - one.top - least.down) / one.height);
  }
  return { width: by.x * wide, height: by.y * Math.max(1, high), gap: least.down };
}
