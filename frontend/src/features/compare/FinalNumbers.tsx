import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { fetchOutcomes } from "@/api/routes";
import type { Catalog } from "@/api/types";
import { formatMetric, formatPlural, formatSeconds, secondsOf } from "@/lib/format";
import { Button } from "@/ui/Button";
import { classes } from "@/ui/classes";
import { differenceOf, type FinalRow, finalRows } from "./finals";
import type { Compared } from "./useCompared";

const SHOWN = 8;

/** Last numbers of each run, with the difference from the first one. */
export function FinalNumbers({
  catalog,
  compared,
}: {
  catalog: Catalog;
  compared: readonly Compared[];
}) {
  const runs = compared.map(({ run }) => run);
  const [showsAll, setShowsAll] = useState(false);
  const { data } = useQuery({
    queryKey: ["outcomes", ...runs.map((run) => `${run.id} ${run.last_seq}`)],
    queryFn: () => fetchOutcomes(runs.map(({ id }) => id)),
    retry: false,
  });
  const rows = finalRows(catalog, runs, data?.outcomes ?? []);
  if (rows.length === 0) return null;
  return (
    <section
      aria-label="Final numbers"
      className="overflow-x-auto rounded-2 border border-line bg-surface p-3"
    >
      <h2 className="mb-1 font-medium text-sm">Final numbers</h2>
      <table className="w-full text-sm">
        <thead>
          <tr className="text-muted text-xs [&>th]:px-2 [&>th]:py-1 [&>th]:font-medium">
            <th className="text-left">Metric</th>
            {compared.map(({ run, color }) => (
              <th key={run.id} className="text-right">
                <span className="inline-flex max-w-48 items-center gap-1.5" title={run.name}>
                  <span
                    aria-hidden="true"
                    className="size-2.5 shrink-0 rounded-full"
                    style={{ background: color }}
                  />
                  <span className="truncate">{run.name}</span>
                </span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(showsAll ? rows : rows.slice(0, SHOWN)).map((row) => (
            <Numbers key={row.path} row={row} />
          ))}
          <tr className="border-line border-t [&>td]:px-2 [&>td]:py-1.5">
            <th scope="row" className="px-2 py-1.5 text-left font-normal text-muted">
              Time in all
            </th>
            {runs.map((run) => (
              <td key={run.id} className="tabular text-right">
                {formatSeconds(secondsOf(run, Date.now()))}
              </td>
            ))}
          </tr>
        </tbody>
      </table>
      {rows.length > SHOWN ? (
        <Button size="small" look="quiet" className="mt-1" onClick={() => setShowsAll(!showsAll)}>
          {showsAll ? "Fewer numbers" : formatPlural(rows.length - SHOWN, "more number")}
        </Button>
      ) : null}
    </section>
  );
}

function Numbers({ row }: { row: FinalRow }) {
  return (
    <tr className="border-line border-t">
      <th scope="row" className="px-2 py-1.5 text-left font-normal" title={row.path}>
        {row.title}
        <span className="block max-w-64 truncate text-muted text-xs">{row.path}</span>
      </th>
      {row.values.map((value, place) => (
        <td key={place} className="tabular whitespace-nowrap px-2 py-1.5 text-right align-top">
          <span className="font-medium">{formatMetric(value)}</span>{" "}
          <Difference row={row} place={place} />
          {typeof row.starts[place] === "number" ? (
            <span className="block text-muted text-xs">from {formatMetric(row.starts[place])}</span>
          ) : null}
        </td>
      ))}
    </tr>
  );
}

function Difference({ row, place }: { row: FinalRow; place: number }) {
  const difference = differenceOf(row.values, place);
  if (difference === null) return null;
  const isGood = row.better === "lower" ? difference < 0 : difference > 0;
  const isKnown = row.better !== "none" && difference !== 0;
  return (
    <span
      className={classes(
        "text-xs",
        isKnown ? (isGood ? "text-success" : "text-warning") : "text-muted",
      )}
    >
      {difference > 0 ? "+" : ""}
      {formatMetric(difference)}
    </span>
  );
}
