/** One colour each: of a node, wherever it is drawn, and of a part of memory, whatever else is there. */
import type { Catalog } from "@/api/types";

export type Colors = Readonly<Record<string, string>>;

/** As many learners have a colour of their own: `--id-1` and on, in the tokens. */
export const IDENTITIES = 6;
/** As many runs are compared, each in one of these colours. */
export const MAX_COMPARED = IDENTITIES;
const UNKNOWN = "var(--muted)";

export function identityColor(number: number): string {
  return `var(--id-${number})`;
}

const ALL_IDENTITIES = Array.from({ length: IDENTITIES }, (_, place) => identityColor(place + 1));

export function nodeColors(
  { kinds }: Pick<Catalog, "kinds">,
  nodes: Readonly<Record<string, { kind: string }>>,
  identities: Readonly<Record<string, number>>,
): Colors {
  return Object.fromEntries(
    Object.entries(nodes).map(([id, { kind }]) => {
      const own = identities[id];
      return [id, own === undefined ? kindColor(kinds[kind]) : identityColor(own)];
    }),
  );
}

/**
 * Colours for nodes that stand on one chart: all as they are, but of several that share the colour of their kind
 * only the first has it, and the others take what no learner has. Beyond those they share it.
 *
 * @param colors of every node of the loop
 */
export function chartColors(colors: Colors, shown: readonly string[]): Colors {
  const taken = new Set(Object.values(colors).filter((color) => ALL_IDENTITIES.includes(color)));
  const used = new Set<string>();
  const found: Record<string, string> = {};
  for (const id of shown) {
    const own = colors[id] ?? UNKNOWN;
    const free = used.has(own) ? ALL_IDENTITIES.find((color) => !taken.has(color)) : undefined;
    found[id] = free ?? own;
    used.add(own);
    if (free) taken.add(free);
  }
  return found;
}

export function kindColor(kind: { color: string } | undefined): string {
  return kind ? `var(${kind.color})` : UNKNOWN;
}

export function softColor(color: string): string {
  return color === UNKNOWN ? "var(--sunken)" : color.replace(/\)$/, "-soft)");
}

export function partColor(part: string): string {
  return `var(--part-${part}, var(--part-other))`;
}

/** A CSS variable as a value that a canvas understands. */
export function resolveColor(color: string): string {
  const name = /^var\((--[\w-]+)\)$/.exec(color)?.[1];
  if (!name) return color;
  const style = getComputedStyle(document.documentElement);
  const value = style.getPropertyValue(name).trim();
  const [, light, dark] = /^light-dark\((#\w+), (#\w+)\)$/.exec(value) ?? [];
  return (style.colorScheme === "dark" ? dark : light) ?? (value || color);
}
