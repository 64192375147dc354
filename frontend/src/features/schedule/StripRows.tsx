import type { Span, Strip } from "./strip";

interface RowsProps {
  strip: Strip;
  colorOf: (node: string) => string;
  /** Each step apart, where there are few. */
  hasGaps?: boolean;
}

const WIDTH = 1000;
const ROW = 10;
const PITCH = 14;
/** The least width of a span, so that one step among thousands is seen. */
const THINNEST = 1.5;

/** When each learner learns: one row each, one path each, however many rounds there are. */
export function Rows({ strip, colorOf, hasGaps = false }: RowsProps) {
  const rows = [...strip.learners];
  const height = Math.max(1, rows.length) * PITCH;
  const scale = WIDTH / Math.max(1, strip.steps);
  return (
    <svg
      role="img"
      aria-label={describe(strip)}
      className="h-full w-full"
      viewBox={`0 0 ${WIDTH} ${height}`}
      preserveAspectRatio="none"
    >
      {rows.map(([node, spans], row) => (
        <g key={node} transform={`translate(0 ${row * PITCH + (PITCH - ROW) / 2})`}>
          <rect width={WIDTH} height={ROW} fill="var(--sunken)" />
          <path d={pathOf(hasGaps ? steps(spans) : spans, scale, hasGaps)} fill={colorOf(node)} />
        </g>
      ))}
      {strip.items.slice(1).map((item) => (
        <rect
          key={item.at.join(".")}
          x={item.from * scale}
          width={THINNEST}
          height={height}
          fill="var(--line)"
        />
      ))}
    </svg>
  );
}

function pathOf(spans: readonly Span[], scale: number, hasGaps: boolean): string {
  return spans
    .map(({ from, to }) => {
      const full = (to - from) * scale;
      const width = Math.max(THINNEST, hasGaps ? full * 0.92 : full);
      return `M${(from * scale).toFixed(2)} 0h${width.toFixed(2)}v${ROW}h-${width.toFixed(2)}z`;
    })
    .join("");
}

const MAX_STEPS = 60;

function steps(spans: readonly Span[]): readonly Span[] {
  const count = spans.reduce((sum, { from, to }) => sum + to - from, 0);
  if (count > MAX_STEPS) return spans;
  return spans.flatMap(({ from, to }) =>
    Array.from({ length: to - from }, (_, at) => ({ from: from + at, to: from + at + 1 })),
  );
}

function describe({ learners }: Strip): string {
  const words = [...learners].map(([node, spans]) => {
    const count = spans.reduce((sum, { from, to }) => sum + to - from, 0);
    return `${node} learns in ${count} ${count === 1 ? "step" : "steps"}`;
  });
  return words.length > 0 ? words.join(", ") : "Nothing learns yet";
}
