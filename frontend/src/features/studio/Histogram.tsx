import { formatMetric, formatPlural } from "@/lib/format";
import { histogram, mean } from "@/lib/statistics";

const PARTS = 10;
const HEIGHT = 56;

interface HistogramProps {
  title: string;
  color: string;
  values: readonly number[];
  failed: number;
}

/** How often each score came. */
export function Histogram({ title, color, values, failed }: HistogramProps) {
  const { counts, low, high } = histogram(values, PARTS);
  const most = Math.max(1, ...counts);
  const average = mean(values);
  const told = `${title}: ${formatPlural(values.length, "row")}, mean ${formatMetric(average)}, from ${formatMetric(low)} to ${formatMetric(high)}: ${counts.join(", ")}`;
  return (
    <section className="border-line border-t px-4 py-3">
      <h3 className="mb-2 flex items-center gap-2 text-sm">
        <span className="size-2.5 rounded-[2px]" style={{ background: color }} />
        <b className="min-w-0 flex-1 truncate font-semibold">{title}</b>
        <span className="text-muted text-xs">mean</span>
        <b className="tabular text-xs">{formatMetric(average)}</b>
      </h3>
      <div
        role="img"
        aria-label={told}
        className="flex items-end gap-0.5 border-line border-b"
        style={{ height: HEIGHT }}
      >
        {counts.map((count, part) => (
          <span
            key={part}
            className="flex-1 rounded-t-[2px]"
            style={{
              background: color,
              height: count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT),
            }}
          />
        ))}
      </div>
      <div className="tabular mt-1 flex justify-between text-muted text-xs" aria-hidden="true">
        <span>{formatMetric(low)}</span>
        <span>{formatMetric(high)}</span>
      </div>
      {failed > 0 ? (
        <p className="mt-1 text-error text-xs">{formatPlural(failed, "row")} failed, left out</p>
      ) : null}
    </section>
  );
}
