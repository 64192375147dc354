export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

export function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : sum(values) / values.length;
}

/** How many values lie in each of so many parts of what they span; at least from 0 to 1. */
export function histogram(values: readonly number[], parts: number) {
  const low = Math.min(0, ...values);
  const high = Math.max(1, ...values);
  const counts = Array.from({ length: parts }, () => 0);
  for (const value of values) {
    const part = Math.min(parts - 1, Math.floor(((value - low) / (high - low)) * parts));
    counts[part] = (counts[part] ?? 0) + 1;
  }
  return { counts, low, high };
}

/** How two lists go together, from -1 to 1; null where one of them does not vary. */
export function correlation(
  first: readonly (number | null)[],
  second: readonly (number | null)[],
): number | null {
  const pairs = first.flatMap((a, place) => {
    const b = second[place];
    return a === null || b === null || b === undefined ? [] : [[a, b] as const];
  });
  const left = mean(pairs.map(([a]) => a));
  const right = mean(pairs.map(([, b]) => b));
  if (left === null || right === null) return null;
  let both = 0;
  let one = 0;
  let other = 0;
  for (const [a, b] of pairs) {
    both += (a - left) * (b - right);
    one += (a - left) ** 2;
    other += (b - right) ** 2;
  }
  return one === 0 || other === 0 ? null : both / Math.sqrt(one * other);
}
