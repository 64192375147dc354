/** Settings of a sweep in few words, and the order of its values. Pure. */
import type { Bodies } from "@/api/types";

/** Each path by as much of its end as tells it from the others. */
export function namesOf(paths: readonly string[]): string[] {
  return paths.map((path) => {
    const words = path.split(".");
    const others = paths.filter((one) => one !== path);
    for (let count = 1; count < words.length; count += 1) {
      const end = words.slice(-count).join(".");
      if (others.every((one) => one !== end && !one.endsWith(`.${end}`))) return end;
    }
    return path;
  });
}

type Variant = Pick<Bodies["SweepVariant"], "rank">;

/** The best first; those without a place in the order in which they wait. */
export function byRank<V extends Variant>(variants: readonly V[]): V[] {
  return variants.toSorted(
    (a, b) => (a.rank ?? Number.POSITIVE_INFINITY) - (b.rank ?? Number.POSITIVE_INFINITY) || 0,
  );
}
