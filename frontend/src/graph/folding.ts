/**
 * Closed groups: one card in the place of their nodes, to which the edges stay attached that lead in and out. What
 * runs inside of them is not drawn. Pure.
 */
import type { Catalog } from "@/api/types";
import { groupCard, membersOf } from "@/document/groups";
import type { LoopDocument } from "@/document/types";
import type { Dot } from "./compact";
import { edgeKinds, isSided } from "./edgeKinds";
import { HEADER_HEIGHT, NODE_WIDTH, type Size } from "./geometry";
import type { RouteEdge } from "./routes";

const ROW = 20;
const BELOW = 10;
const LEAST_ROWS = 1;

export interface FoldedCard extends Size {
  id: string;
  name: string;
  members: readonly string[];
  /** Where edges lead in and out, by the ports of the nodes inside. */
  ends: readonly Dot[];
}

export interface Fold {
  /** By a node that is not drawn: the card that is drawn for it. */
  cardOf: ReadonlyMap<string, string>;
  cards: readonly FoldedCard[];
}

const NOTHING: Fold = { cardOf: new Map(), cards: [] };

export function foldOf(catalog: Catalog, document: LoopDocument): Fold {
  const { groups } = document;
  if (!groups) return NOTHING;
  const cardOf = new Map<string, string>();
  const found: { id: string; name: string; members: string[] }[] = [];
  for (const [name, group] of Object.entries(groups)) {
    if (!group.closed) continue;
    const members = membersOf(catalog, document, group).filter((id) => !cardOf.has(id));
    if (members.length === 0) continue;
    const id = groupCard(name);
    for (const member of members) cardOf.set(member, id);
    found.push({ id, name, members });
  }
  if (found.length === 0) return NOTHING;
  const ends = endsOf(catalog, document, cardOf);
  const cards = found.map((card) => {
    const own = ends.get(card.id) ?? [];
    const rows = Math.max(
      LEAST_ROWS,
      ...[true, false].map((side) => own.filter(({ isTarget }) => isTarget === side).length),
    );
    return { ...card, ends: own, width: NODE_WIDTH, height: HEADER_HEIGHT + rows * ROW + BELOW };
  });
  return { cardOf, cards };
}

function endsOf(
  catalog: Catalog,
  document: LoopDocument,
  cardOf: ReadonlyMap<string, string>,
): Map<string, Dot[]> {
  const ends = new Map<string, Dot[]>();
  for (const { edge, from, to, kind } of edgeKinds(catalog, document).edges) {
    const [source, target] = [cardOf.get(from.node), cardOf.get(to.node)];
    if (!isSided(kind) || (source !== undefined && source === target)) continue;
    for (const [card, port, isTarget] of [
      [source, edge.from, false],
      [target, edge.to, true],
    ] as const) {
      if (card === undefined) continue;
      const own = ends.get(card) ?? [];
      ends.set(card, own);
      const beside = own.filter((dot) => dot.isTarget === isTarget);
      if (beside.some((dot) => dot.port === port)) continue;
      own.push({ port, isTarget, top: HEADER_HEIGHT + beside.length * ROW + ROW / 2 });
    }
  }
  return ends;
}

/** The edges of the graph that is drawn: those within a card are left out, others end at it. */
export function foldEdges(parts: readonly RouteEdge[], fold: Fold): RouteEdge[] {
  const { cardOf, cards } = fold;
  if (cards.length === 0) return [...parts];
  const byId = new Map(cards.map((card) => [card.id, card]));
  const topAt = (card: string, port: string, isTarget: boolean) =>
    byId.get(card)?.ends.find((dot) => dot.port === port && dot.isTarget === isTarget)?.top;
  return parts.flatMap((part) => {
    const [source, target] = [cardOf.get(part.source), cardOf.get(part.target)];
    if (source === undefined && target === undefined) return [part];
    if (source === target) return [];
    const [from, to] = [`${part.source}.${part.sourcePort}`, `${part.target}.${part.targetPort}`];
    const follower = part.follower && (cardOf.get(part.follower) ?? part.follower);
    return [
      {
        ...part,
        follower,
        ...(source && {
          source,
          sourcePort: from,
          sourceTop: topAt(source, from, false) ?? part.sourceTop,
        }),
        ...(target && {
          target,
          targetPort: to,
          targetTop: topAt(target, to, true) ?? part.targetTop,
        }),
      },
    ];
  });
}
