interface SparklineProps {
  values: readonly (number | null)[];
  label: string;
  color?: string;
  width?: number;
  height?: number;
}

export function Sparkline(props: SparklineProps) {
  const { values, label, color = "var(--muted)", width = 88, height = 24 } = props;
  const path = sparkPath(values, width, height);
  return (
    <svg
      role="img"
      aria-label={label}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      className="block shrink-0 overflow-visible"
    >
      <path
        d={path}
        fill="none"
        stroke={color}
        strokeWidth={1.5}
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}

/** The least value lies at the foot, the greatest at the top, what never changes in the middle. */
export function sparkPath(
  values: readonly (number | null)[],
  width: number,
  height: number,
): string {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return "";
  const least = Math.min(...known);
  const span = Math.max(...known) - least;
  const x = (place: number) => (place * width) / Math.max(1, values.length - 1);
  const y = (value: number) =>
    span === 0 ? height / 2 : height - ((value - least) / span) * height;
  let isDown = false;
  return values
    .flatMap((value, place) => {
      if (value === null) {
        isDown = false;
        return [];
      }
      const point = `${isDown ? "L" : "M"}${x(place).toFixed(1)} ${y(value).toFixed(1)}`;
      const isAlone = !isDown && (values[place + 1] ?? null) === null;
      isDown = true;
      return isAlone ? [point, "h0"] : [point];
    })
    .join("");
}
