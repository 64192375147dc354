/** The graph laid out pool by pool, so that no frame has a node of another pool in it. Pure. */
import type { Catalog } from "@/api/types";
import { areaOf, boxesOf } from "./boxes";
import { framesOf } from "./frames";
import { GRID } from "./geometry";
import { arrange } from "./layout";
import { poolOf, poolsOf } from "./pools";
import type { LoopDocument, Point } from "./types";

/** Between what stands below another. */
const APART = 3 * GRID;

/**
 * Places for all nodes: the nodes of no pool, then each pool, in the order in which rows reach
 * them, one below the other. The common corner stays where it was.
 */
export function arrangePools(catalog: Catalog, document: LoopDocument): Record<string, Point> {
  const whole = arrange(catalog, document);
  const ids = Object.keys(document.nodes);
  const corner = areaOf(boxesOf(catalog, { ...document, layout: whole }));
  if (!corner) return whole;
  const places: Record<string, Point> = {};
  let top = corner.top;
  for (const name of [null, ...poolsOf(document).map((pool) => pool.name)].toSorted(byFlow())) {
    const own = ids.filter((id) => namedPool(id) === name);
    if (own.length === 0) continue;
    const layout = arrange(catalog, { ...document, layout: whole }, own);
    const block = framed({ ...document, layout }, name, own);
    if (!block) continue;
    const down = Math.ceil((top - block.top) / GRID) * GRID;
    const across = Math.round((corner.left - block.left) / GRID) * GRID;
    for (const id of own) {
      const [x, y] = layout[id] ?? [0, 0];
      places[id] = [x + across, y + down];
    }
    top = block.bottom + down + APART;
  }
  // A frame has its head above its boxes.
  const [left, upper] = [
    Math.min(...Object.values(places).map(([x]) => x)),
    Math.min(...Object.values(places).map(([, y]) => y)),
  ];
  return Object.fromEntries(
    Object.entries(places).map(([id, [x, y]]) => [
      id,
      [x - left + corner.left, y - upper + corner.top],
    ]),
  );

  function namedPool(id: string): string | null {
    const name = poolOf(catalog, document, id);
    return poolsOf(document).some((pool) => pool.name === name) ? name : null;
  }

  function framed(placed: LoopDocument, name: string | null, own: readonly string[]) {
    const boxes = boxesOf(catalog, placed, own);
    return framesOf(catalog, placed, boxes).find(({ pool }) => pool.name === name) ?? areaOf(boxes);
  }

  function byFlow() {
    const reached = (name: string | null) => {
      const across = ids.filter((id) => namedPool(id) === name).map((id) => whole[id]?.[0] ?? 0);
      return across.length > 0 ? across.reduce((a, b) => a + b) / across.length : 0;
    };
    return (a: string | null, b: string | null) =>
      a === null ? -1 : b === null ? 1 : reached(a) - reached(b);
  }
}
