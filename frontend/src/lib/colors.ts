/** One colour each: of a node, wherever it is drawn, and of a part of memory, whatever else is there. */
import type { Catalog } from "@/api/types";

type Nodes = Readonly<Record<string, { kind: string }>>;

/** Colours for nodes whose kind's own is taken: `--node-1` and on, in the tokens. */
const SPARE = 6;
const UNKNOWN = "var(--muted)";

/** What nodes of one loop had in this session, those that are gone too; the last answer beside it. */
export interface ColorMemory {
  nodes: Nodes;
  kinds: Catalog["kinds"];
  colors: Readonly<Record<string, string>>;
  seen: Record<string, { kind: string; color: string }>;
}

export function createColorMemory(): ColorMemory {
  return { nodes: {}, kinds: {}, colors: {}, seen: {} };
}

/**
 * The colour of every node of a loop: the first node of a kind's group has the group's colour, each further one
 * the next that no node has, so that two curves can be told apart; beyond those, colours come round again.
 * With a memory a node keeps what it had, whatever goes or comes beside it, under a new name too.
 */
export function nodeColors(
  { kinds }: Pick<Catalog, "kinds">,
  nodes: Nodes,
  memory = createColorMemory(),
): Readonly<Record<string, string>> {
  if (memory.nodes === nodes && memory.kinds === kinds) return memory.colors;
  const taken = new Set<string>();
  const colors: Record<string, string> = {};
  const before = keptColors(nodes, memory);
  for (const [id, color] of Object.entries(before)) {
    if (taken.has(color) && !isShared(color, taken)) continue;
    colors[id] = color;
    taken.add(color);
  }
  for (const [id, { kind }] of Object.entries(nodes)) {
    colors[id] ??= freeColor(kindColor(kinds[kind]), taken, Object.keys(colors).length);
    taken.add(colors[id]);
    memory.seen[id] = { kind, color: colors[id] };
  }
  Object.assign(memory, { nodes, kinds, colors });
  return colors;
}

/** What the nodes had. One in the place of another of its kind that is gone was renamed. */
function keptColors(nodes: Nodes, memory: ColorMemory): Record<string, string> {
  const were = Object.keys(memory.nodes);
  const now = Object.entries(nodes);
  const kept: Record<string, string> = {};
  for (const [place, [id, { kind }]] of now.entries()) {
    const other = were[place];
    const isRenamed =
      were.length === now.length &&
      other !== undefined &&
      !(other in nodes) &&
      !(id in memory.nodes);
    const had = memory.seen[isRenamed ? other : id];
    if (had?.kind === kind) kept[id] = had.color;
  }
  return kept;
}

const SPARES = Array.from({ length: SPARE }, (_, place) => `var(--node-${place + 1})`);

/** Whether every spare colour has gone, so that several nodes have the same. */
function isShared(color: string, taken: ReadonlySet<string>): boolean {
  return SPARES.includes(color) && SPARES.every((spare) => taken.has(spare));
}

function freeColor(own: string, taken: ReadonlySet<string>, count: number): string {
  if (!taken.has(own)) return own;
  const free = SPARES.find((spare) => !taken.has(spare));
  return free ?? SPARES[count % SPARE] ?? own;
}

export function kindColor(kind: { color: string } | undefined): string {
  return kind ? `var(${kind.color})` : UNKNOWN;
}

/** The colour of a part of memory, such as weights: the same on every machine. */
export function partColor(part: string): string {
  return `var(--part-${part}, var(--part-other))`;
}

/** A CSS variable as a value that a canvas understands. */
export function resolveColor(color: string): string {
  const name = /^var\((--[\w-]+)\)$/.exec(color)?.[1];
  if (!name) return color;
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || color;
}
