import { ChevronRight, TriangleAlert } from "lucide-react";
import { Fragment, useState } from "react";
import type { SourceScores } from "@/api/types";
import type { Colors } from "@/lib/colors";
import { Badge } from "@/ui/Badge";
import { APART, plainText, type Sorting, sorted, type Table, type TableRow } from "./table";

interface ScoreTableProps {
  table: Table;
  sorting: Sorting;
  colors: Colors;
  onChoose: (node: string) => void;
}

export function ScoreTable({ table, sorting, colors, onChoose }: ScoreTableProps) {
  const [open, setOpen] = useState<number | null>(null);
  const { sources } = table;
  return (
    <div className="min-h-0 flex-1 overflow-auto" role="region" aria-label="Scores" tabIndex={0}>
      <table className="w-full border-separate border-spacing-0 text-sm">
        <thead className="sticky top-0 z-10 bg-surface text-left text-muted text-xs">
          <tr className="[&>th]:border-line [&>th]:border-b [&>th]:px-2 [&>th]:py-2 [&>th]:font-medium">
            <th className="w-8">
              <span className="sr-only">Open</span>
            </th>
            <th className="w-[22%]">Prompt</th>
            <th className="w-[18%]">Answer</th>
            <th className="w-[10%]">Expected</th>
            {sources.map(({ edge, node }) => (
              <th key={edge} className="min-w-28">
                <button
                  type="button"
                  className="flex max-w-36 items-center gap-1.5 rounded-1 hover:text-text"
                  onClick={() => onChoose(node)}
                >
                  <span
                    className="size-2.5 shrink-0 rounded-[2px]"
                    style={{ background: colors[node] ?? "var(--muted)" }}
                  />
                  <span className="truncate">{node}</span>
                </button>
              </th>
            ))}
            <th className="w-16 text-right">Total</th>
            <th className="w-36">
              <span className="sr-only">Note</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {sorted(table.rows, sorting).map((row) => {
            const isOpen = open === row.place;
            return (
              <Fragment key={row.place}>
                <tr
                  className="cursor-pointer hover:bg-hover [&>td]:h-9 [&>td]:border-line [&>td]:border-b [&>td]:px-2"
                  onClick={() => setOpen(isOpen ? null : row.place)}
                >
                  <td>
                    <button
                      type="button"
                      aria-expanded={isOpen}
                      aria-label={`Row ${row.place + 1}`}
                      className="flex text-faint"
                    >
                      <ChevronRight size={14} className={isOpen ? "rotate-90" : ""} />
                    </button>
                  </td>
                  <td className="max-w-0 truncate">{plainText(row.row.prompt)}</td>
                  <td className="max-w-0 truncate font-mono text-xs">
                    {plainText(row.row.completion)}
                  </td>
                  <td className="max-w-0 truncate font-mono text-muted text-xs">
                    {plainText(row.row.target)}
                  </td>
                  {sources.map((source, place) => (
                    <td key={source.edge}>
                      <Score
                        score={row.scores[place] ?? null}
                        failure={row.failures[place] ?? failureOf(source)}
                        color={colors[source.node] ?? "var(--muted)"}
                      />
                    </td>
                  ))}
                  <td className="tabular text-right font-semibold">
                    {row.total === null ? "–" : row.total.toFixed(2)}
                  </td>
                  <td>
                    {row.spread >= APART ? (
                      <Badge tone="warning">
                        <TriangleAlert size={12} aria-hidden="true" /> sources disagree
                      </Badge>
                    ) : null}
                  </td>
                </tr>
                {isOpen ? (
                  <tr>
                    <td colSpan={6 + sources.length} className="border-line border-b bg-sunken p-3">
                      <RowDetail row={row} />
                    </td>
                  </tr>
                ) : null}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Why a source gave no score at all; null: it did. */
function failureOf({ error, line }: SourceScores): ScoreProps["failure"] {
  return error === null ? null : { message: error, line };
}

interface ScoreProps {
  score: number | null;
  failure: TableRow["failures"][number];
  color: string;
}

function Score({ score, failure, color }: ScoreProps) {
  if (score === null) {
    if (failure === null) return <span className="text-faint">–</span>;
    return (
      <Badge tone="error" title={failure.message}>
        {failure.line === null ? "failed" : `line ${failure.line}`}
      </Badge>
    );
  }
  const share = Math.min(1, Math.abs(score));
  return (
    <span className="flex items-center gap-2">
      <span className="h-1.5 w-12 shrink-0 overflow-hidden rounded-full bg-hover">
        <span
          className="block h-full"
          style={{ width: `${share * 100}%`, background: color, opacity: score < 0 ? 0.5 : 1 }}
        />
      </span>
      <span className="tabular">{score.toFixed(2)}</span>
    </span>
  );
}

function RowDetail({ row }: { row: TableRow }) {
  return (
    <div className="grid gap-3 text-xs lg:grid-cols-3">
      <Text title="Prompt" text={whole(row.row.prompt)} />
      <Text title="Answer" text={whole(row.row.completion)} />
      <div className="min-w-0">
        <h3 className="mb-1 font-semibold">Columns</h3>
        <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-0.5">
          {Object.entries(row.row.columns).map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="font-mono text-muted">{name}</dt>
              <dd className="truncate font-mono">{plainText(value)}</dd>
            </div>
          ))}
        </dl>
        {row.failures.map((failure, place) =>
          failure ? (
            <p key={place} className="mt-2 text-error">
              {failure.message}
            </p>
          ) : null,
        )}
      </div>
    </div>
  );
}

function whole(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null, null, 2);
}

function Text({ title, text }: { title: string; text: string }) {
  return (
    <div className="min-w-0">
      <h3 className="mb-1 font-semibold">{title}</h3>
      <pre className="max-h-56 overflow-auto whitespace-pre-wrap rounded-2 border border-line bg-surface p-2 font-mono">
        {text}
      </pre>
    </div>
  );
}
