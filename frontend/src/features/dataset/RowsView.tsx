import { useState } from "react";
import { previewRows } from "@/api/routes";
import type { DatasetPage } from "@/api/types";
import { formatWhole } from "@/lib/format";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Preview, usePreviewQuery } from "./preview";

const PAGE = 20;

export function RowsView({ node }: { node: string }) {
  const [offset, setOffset] = useState(0);
  const page = usePreviewQuery(["rows", node, offset], (yaml, signal) =>
    previewRows({ what: "rows", yaml, node, offset, count: PAGE }, signal),
  );
  return (
    <Preview asked={page} loading="Reading the rows" failed="The rows could not be read">
      {(found) => <Page page={found} offset={offset} onOffset={setOffset} />}
    </Preview>
  );
}

interface PageProps {
  page: DatasetPage;
  offset: number;
  onOffset: (offset: number) => void;
}

function Page({ page, offset, onOffset }: PageProps) {
  const last = Math.min(offset + PAGE, page.total);
  return (
    <>
      {page.unread.length > 0 ? (
        <p role="status" className="shrink-0 bg-warning-soft px-4 py-1.5 text-warning text-xs">
          The loop reads {page.unread.map((name) => `“${name}”`).join(", ")}, which these rows lack.
          Map a column to it in the dataset’s settings.
        </p>
      ) : null}
      <div className="min-h-0 flex-1 overflow-auto" role="region" aria-label="Rows" tabIndex={0}>
        <table className="border-separate border-spacing-0 text-xs">
          <thead className="sticky top-0 z-10 bg-surface text-left align-top">
            <tr className="[&>th]:border-line [&>th]:border-b [&>th]:px-3 [&>th]:py-2 [&>th]:font-normal">
              <th className="w-12 text-right text-muted">Row</th>
              {page.columns.map((column) => (
                <th key={column.name} className="min-w-40 max-w-96">
                  <Column column={column} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {page.rows.map((row, place) => (
              <tr
                key={offset + place}
                className="[&>td]:border-line [&>td]:border-b [&>td]:px-3 [&>td]:py-1.5 [&>td]:align-top"
              >
                <td className="tabular text-right text-muted">{offset + place + 1}</td>
                {page.columns.map(({ name }) => (
                  <td key={name} className="max-w-96">
                    <div className="line-clamp-3 whitespace-pre-wrap wrap-anywhere font-mono">
                      {cellText(row[name])}
                    </div>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <nav
        aria-label="Pages of rows"
        className="flex shrink-0 items-center gap-2 border-line border-t px-4 py-1.5 text-xs"
      >
        <span className="tabular text-muted">
          {formatWhole(offset + 1)} to {formatWhole(last)} of {formatWhole(page.total)} rows
        </span>
        <span className="flex-1" />
        <Button
          size="small"
          disabled={offset === 0}
          onClick={() => onOffset(Math.max(0, offset - PAGE))}
        >
          Previous
        </Button>
        <Button size="small" disabled={last >= page.total} onClick={() => onOffset(offset + PAGE)}>
          Next
        </Button>
      </nav>
    </>
  );
}

function Column({ column }: { column: DatasetPage["columns"][number] }) {
  const { name, source, is_mapped: isMapped, type, used } = column;
  return (
    <>
      <span className="flex items-center gap-2">
        <b className="font-mono font-semibold">{name}</b>
        <span className="text-muted">{type}</span>
        {isMapped && source !== name ? (
          <Badge title="Name in the source">from {source}</Badge>
        ) : null}
      </span>
      {used.length === 0 ? (
        <span className="text-faint">not used</span>
      ) : (
        <ul className="text-muted">
          {used.map((use) => (
            <li key={`${use.node} ${use.reads}`}>
              <b className="font-medium text-text">{use.node}</b>: {use.reads}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** A value of a row in a cell of a table; a chat by its turns. Pure. */
function cellText(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) {
    const turns = value.map(turn);
    if (turns.length > 0 && turns.every((one) => one !== null)) return turns.join("\n");
  }
  return JSON.stringify(value);
}

function turn(value: unknown): string | null {
  if (typeof value !== "object" || value === null) return null;
  if (!("role" in value) || !("content" in value)) return null;
  return `${String(value.role)}: ${String(value.content)}`;
}
