import { formatMetric, formatTicks } from "@/lib/format";
import type { ProbeResult } from "./answers";

/** Every reading of a metric, its best one marked. Needs no canvas, so that it prints. */
export function ResultChart({ result }: { result: ProbeResult }) {
  const { values, best, start, end } = result;
  if (values.length < 2) return null;
  const steps = values.map(({ step }) => step);
  const [first, last] = [Math.min(...steps), Math.max(...steps)];
  const [low, high] = boundsOf(values.map(({ value }) => value));
  const x = (step: number) => ((step - first) / (last - first || 1)) * 100;
  const y = (value: number) => (1 - (value - low) / (high - low)) * 100;
  const ticks = [high, (low + high) / 2, low];
  const texts = formatTicks(ticks);
  const points = values.map(({ step, value }) => `${x(step)},${y(value)}`).join(" ");
  const isRight = x(best.step) > 80;
  return (
    <figure
      aria-label={`${result.metric} by step, from ${formatMetric(start.value)} to ${formatMetric(end.value)}`}
      className="tabular text-muted text-xs"
    >
      <div className="relative mt-5 mr-2 ml-12 h-32">
        {ticks.map((tick, place) => (
          <div
            key={tick}
            className="absolute inset-x-0 border-line border-t"
            style={{ top: `${y(tick)}%` }}
          >
            <span className="absolute right-full -translate-y-1/2 pr-1.5">{texts[place]}</span>
          </div>
        ))}
        <svg
          aria-hidden="true"
          viewBox="0 0 100 100"
          preserveAspectRatio="none"
          className="absolute inset-0 size-full overflow-visible"
        >
          <polyline
            points={points}
            fill="none"
            stroke="var(--accent)"
            strokeWidth={2}
            strokeLinejoin="round"
            vectorEffect="non-scaling-stroke"
          />
        </svg>
        <span
          className="absolute size-2 -translate-1/2 rounded-full bg-accent"
          style={{ left: `${x(best.step)}%`, top: `${y(best.value)}%` }}
        />
        <span
          className={`absolute -translate-y-[1.4em] whitespace-nowrap text-text ${isRight ? "-translate-x-full" : ""}`}
          style={{ left: `${x(best.step)}%`, top: `${y(best.value)}%` }}
        >
          best {formatMetric(best.value)}
        </span>
      </div>
      <figcaption className="mt-1 mr-2 ml-12 flex justify-between">
        <span>step {first}</span>
        <span>step {last}</span>
      </figcaption>
    </figure>
  );
}

function boundsOf(values: readonly number[]): [number, number] {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (low >= 0 && high <= 1) return [0, high > 0.5 ? 1 : 0.5];
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}
