/** One colour each: of a node, wherever it is drawn, and of a part of memory, whatever else is there. */
import type { Catalog } from "@/api/types";

type Nodes = Readonly<Record<string, { kind: string }>>;

/** Colours for nodes whose kind's own is taken: `--node-1` and on, in the tokens. */
const SPARE = 6;
const UNKNOWN = "var(--muted)";
const known = new WeakMap<Nodes, { kinds: Catalog["kinds"]; colors: Record<string, string> }>();

/**
 * The colour of every node of a loop, by its place in the loop: the first node of a kind's group has the
 * group's colour, each further one the next that no node has yet, so that two curves can be told apart.
 * Beyond those, colours come round again.
 */
export function nodeColors(
  { kinds }: Pick<Catalog, "kinds">,
  nodes: Nodes,
): Record<string, string> {
  const found = known.get(nodes);
  if (found?.kinds === kinds) return found.colors;
  const taken = new Set<string>();
  let spare = 0;
  const colors: Record<string, string> = {};
  for (const [id, { kind }] of Object.entries(nodes)) {
    const own = kindColor(kinds[kind]);
    colors[id] = taken.has(own) ? `var(--node-${(spare++ % SPARE) + 1})` : own;
    taken.add(own);
  }
  known.set(nodes, { kinds, colors });
  return colors;
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
