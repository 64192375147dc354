import type { Colors } from "@/lib/colors";
import { formatMetric, formatPlural } from "@/lib/format";
import { correlation, histogram, mean } from "@/lib/statistics";
import type { Table } from "./table";

interface DistributionsProps {
  table: Table | null;
  colors: Colors;
}

export function Distributions({ table, colors }: DistributionsProps) {
  return (
    <aside
      aria-label="Distribution"
      className="w-[264px] shrink-0 overflow-y-auto border-line border-l bg-surface max-xl:hidden"
    >
      <h2 className="flex h-12 items-center px-4 font-semibold text-base">Distribution</h2>
      {table === null ? (
        <p className="border-line border-t p-4 text-muted text-sm">
          Run a preview to see how often each score occurs.
        </p>
      ) : (
        <Spread table={table} colors={colors} />
      )}
    </aside>
  );
}

export function Spread({ table, colors }: { table: Table; colors: Colors }) {
  const columns = table.sources.map((_, place) =>
    table.rows.map(({ scores }) => scores[place] ?? null),
  );
  return (
    <>
      <Histogram
        title="Total"
        color="var(--accent)"
        values={table.rows.map(({ total }) => total)}
        failed={0}
      />
      {table.sources.map(({ edge, node, failures }, place) => (
        <Histogram
          key={edge}
          title={node}
          color={colors[node] ?? "var(--muted)"}
          values={columns[place] ?? []}
          failed={failures.length}
        />
      ))}
      <Agreement names={table.sources.map(({ node }) => node)} columns={columns} />
    </>
  );
}

interface AgreementProps {
  names: readonly string[];
  columns: readonly (readonly (number | null)[])[];
}

function Agreement({ names, columns }: AgreementProps) {
  const pairs = names.flatMap((first, left) =>
    names.slice(left + 1).map((second, step) => ({
      first,
      second,
      value: correlation(columns[left] ?? [], columns[left + 1 + step] ?? []),
    })),
  );
  if (pairs.length === 0) return null;
  return (
    <section className="border-line border-t px-4 py-3">
      <h3 className="font-semibold text-sm">Agreement</h3>
      <p className="mb-2 text-muted text-xs">
        Correlation: 1 means full agreement, -1 the opposite.
      </p>
      <ul className="flex flex-col gap-1 text-xs">
        {pairs.map(({ first, second, value }) => (
          <li key={`${first} ${second}`} className="flex gap-2">
            <span className="min-w-0 flex-1 truncate text-muted">
              {first} and {second}
            </span>
            <b className="tabular">{value === null ? "does not vary" : formatMetric(value)}</b>
          </li>
        ))}
      </ul>
    </section>
  );
}

const PARTS = 10;
const HEIGHT = 56;

interface HistogramProps {
  title: string;
  color: string;
  values: readonly (number | null)[];
  failed: number;
}

function Histogram({ title, color, values: all, failed }: HistogramProps) {
  const values = all.filter((value) => value !== null);
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
