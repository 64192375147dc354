const COLORS = 8;

/** One colour for a node in every chart of a run, by its place in the loop. Pure. */
export function nodeColor(nodes: readonly string[], node: string): string {
  const index = nodes.indexOf(node);
  return `var(--series-${index < 0 ? COLORS : (index % COLORS) + 1})`;
}

/** A CSS variable as a value that a canvas understands. */
export function resolveColor(color: string): string {
  const name = /^var\((--[\w-]+)\)$/.exec(color)?.[1];
  if (!name) return color;
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || color;
}
