import { Link } from "wouter";
import type { Bodies, Json } from "@/api/types";
import { formatMetric } from "@/lib/format";
import { isFinal } from "@/live/reducer";
import { armColor } from "../controls/arms";
import { RunStateChip } from "../list/RunStateChip";
import { namesOf } from "./names";

export type Sweep = Bodies["RunSweep"];
export type Variant = Bodies["SweepVariant"];

interface SweepTableProps {
  sweep: Sweep;
  /** The combinations, the best first. */
  variants: readonly Variant[];
  /** So many of them have a color in the chart. */
  drawn: number;
}

/** A row for each combination of values: its runs, the main metric, and where it stands. */
export function SweepTable({ sweep, variants, drawn }: SweepTableProps) {
  const names = namesOf(sweep.fields);
  return (
    <table aria-label="Values" className="w-full text-sm">
      <thead>
        <tr className="text-muted text-xs [&>th]:px-2 [&>th]:py-1 [&>th]:font-medium">
          <th className="w-16 text-right">Place</th>
          {sweep.fields.map((path, place) => (
            <th key={path} className="text-left" title={path}>
              {names[place]}
            </th>
          ))}
          <th className="text-right">{sweep.step === null ? "So far" : `At step ${sweep.step}`}</th>
          <th className="text-right">Start</th>
          <th className="text-right">End</th>
          <th className="text-right">Spread</th>
          <th className="text-left">Seeds</th>
        </tr>
      </thead>
      <tbody>
        {variants.map((variant, place) => (
          <Row
            key={variant.label}
            variant={variant}
            fields={sweep.fields}
            color={place < drawn ? armColor(place) : null}
          />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  variant: Variant;
  fields: readonly string[];
  color: string | null;
}

function Row({ variant, fields, color }: RowProps) {
  return (
    <tr className="border-line border-t align-top [&>td]:px-2 [&>td]:py-1.5">
      <td className="tabular text-right text-muted">
        <span className="flex items-center justify-end gap-2">
          {color ? (
            <span
              aria-hidden="true"
              className="size-2.5 shrink-0 rounded-full"
              style={{ background: color }}
            />
          ) : null}
          {variant.rank ?? "–"}
        </span>
      </td>
      {fields.map((path) => (
        <td key={path} className="wrap-anywhere tabular font-medium">
          {shown(variant.values[path] ?? null)}
        </td>
      ))}
      <td className="tabular text-right">{formatMetric(variant.so_far)}</td>
      <td className="tabular text-right">{formatMetric(variant.start)}</td>
      <td className="tabular text-right">{formatMetric(variant.end)}</td>
      <td className="tabular text-right">{formatMetric(variant.spread)}</td>
      <td>
        <ul className="flex flex-wrap gap-x-3 gap-y-1">
          {variant.runs.map((run) => (
            <li key={run.run} className="flex items-center gap-1.5">
              <Link
                href={`/runs/${encodeURIComponent(run.run)}`}
                className="tabular text-accent-text underline"
                title={run.name}
              >
                {run.seed}
              </Link>
              <RunStateChip state={run.state} />
              {isFinal(run.state) || run.step === null ? null : (
                <span className="tabular text-muted text-xs">
                  step {run.step}
                  {run.steps_total === null ? "" : ` of ${run.steps_total}`}
                </span>
              )}
            </li>
          ))}
        </ul>
      </td>
    </tr>
  );
}

function shown(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
