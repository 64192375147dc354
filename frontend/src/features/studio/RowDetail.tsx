import type { SourceScores } from "@/api/types";
import { plainText, type TableRow } from "./table";

interface RowDetailProps {
  row: TableRow;
  sources: readonly SourceScores[];
}

/** A row in full: its texts, what a reward sees besides, and what went wrong. */
export function RowDetail({ row, sources }: RowDetailProps) {
  const others = Object.entries(row.row.columns);
  return (
    <div className="grid gap-3 text-xs lg:grid-cols-3">
      <Text title="Prompt" text={whole(row.row.prompt)} />
      <Text title="Answer" text={whole(row.row.completion)} />
      <div className="min-w-0">
        <h3 className="mb-1 font-semibold">Columns</h3>
        <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-0.5">
          {others.map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="font-mono text-muted">{name}</dt>
              <dd className="truncate font-mono">{plainText(value)}</dd>
            </div>
          ))}
        </dl>
        {sources.map((source, place) => {
          const failure = row.failures[place];
          return failure ? (
            <p key={source.edge} className="mt-2 text-error">
              {failure.message}
            </p>
          ) : null;
        })}
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
