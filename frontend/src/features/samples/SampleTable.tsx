import { ChevronRight, Copy, Info } from "lucide-react";
import { Fragment, useState } from "react";
import type { Catalog, SampleRow } from "@/api/types";
import type { LoopDocument } from "@/document/types";
import { formatMetric, formatName } from "@/lib/format";
import { useCatalog, useDocument } from "@/state/document/context";
import { Button } from "@/ui/Button";
import type { Sorting } from "./groups";
import { copySample, sampleText } from "./sampleText";

const PAGE = 100;

interface SampleTableProps {
  rows: readonly SampleRow[];
  sorting: Sorting;
  open: string | null;
  onOpen: (key: string | null) => void;
}

export function SampleTable({ rows, sorting, open, onOpen }: SampleTableProps) {
  const [count, setCount] = useState(PAGE);
  const scorers = [...new Set(rows.flatMap((row) => Object.keys(row.scores ?? {})))];
  const reward = ({ row }: { row: SampleRow }) => row.reward ?? Number.NEGATIVE_INFINITY;
  const keyed = rows.map((row, index) => ({ row, key: `${row.seq} ${row.id ?? ""} ${index}` }));
  const sorted =
    sorting === "given"
      ? keyed
      : keyed.toSorted((a, b) => (reward(b) - reward(a)) * (sorting === "best" ? 1 : -1));
  const hasAdvantage = rows.some((row) => typeof row.advantage === "number");

  return (
    <div className="min-h-0 flex-1 overflow-auto">
      <table className="w-full border-separate border-spacing-0 text-xs">
        <thead className="sticky top-0 z-10 bg-surface text-left text-muted">
          <tr className="[&>th]:border-line [&>th]:border-b [&>th]:px-2 [&>th]:py-1.5 [&>th]:font-medium">
            <th className="w-6">
              <span className="sr-only">Open</span>
            </th>
            <th className="w-28">Node</th>
            <th className="w-[30%]">Prompt</th>
            <th>Completion</th>
            <th className="w-20 text-right">Reward</th>
            {scorers.map((scorer) => (
              <th
                key={scorer}
                className="w-20 max-w-28 truncate text-right"
                title={`Score of ${scorer}`}
              >
                {scorer}
              </th>
            ))}
            {hasAdvantage ? <th className="w-20 text-right">Advantage</th> : null}
          </tr>
        </thead>
        <tbody>
          {sorted.slice(0, count).map(({ row, key }, index) => {
            const isOpen = open === key;
            return (
              <Fragment key={key}>
                <tr
                  className="cursor-pointer hover:bg-hover [&>td]:border-line [&>td]:border-b [&>td]:px-2 [&>td]:py-1.5 [&>td]:align-top"
                  onClick={() => onOpen(isOpen ? null : key)}
                >
                  <td>
                    <button
                      type="button"
                      aria-expanded={isOpen}
                      aria-label={`Sample ${index + 1}`}
                      className="flex text-faint"
                    >
                      <ChevronRight size={14} className={isOpen ? "rotate-90" : ""} />
                    </button>
                  </td>
                  <td className="max-w-28 truncate text-muted">{row.node ?? ""}</td>
                  <td className="max-w-0 truncate font-mono">{sampleText(row.prompt)}</td>
                  <td className="max-w-0 truncate font-mono">{sampleText(row.completion)}</td>
                  <td className={`tabular text-right font-medium ${rewardInk(row.reward)}`}>
                    {formatMetric(row.reward)}
                  </td>
                  {scorers.map((scorer) => (
                    <td key={scorer} className="tabular text-right">
                      {formatMetric(row.scores?.[scorer])}
                    </td>
                  ))}
                  {hasAdvantage ? (
                    <td className="tabular text-right">{formatMetric(row.advantage)}</td>
                  ) : null}
                </tr>
                {isOpen ? (
                  <tr>
                    <td
                      colSpan={5 + scorers.length + (hasAdvantage ? 1 : 0)}
                      className="border-line border-b bg-sunken p-3"
                    >
                      <SampleDetail row={row} />
                    </td>
                  </tr>
                ) : null}
              </Fragment>
            );
          })}
        </tbody>
      </table>
      {sorted.length > count ? (
        <div className="p-3 text-center">
          <Button size="small" onClick={() => setCount(count + PAGE)}>
            Show more, {sorted.length - count} left
          </Button>
        </div>
      ) : null}
    </div>
  );
}

function rewardInk(reward: number | null | undefined): string {
  if (typeof reward !== "number") return "text-faint";
  return reward > 0 ? "text-success" : reward < 0 ? "text-error" : "text-muted";
}

const TEXTS = ["prompt", "completion", "target"];

const IN_TABLE = { seq: true, step: true, node: true, reward: true, advantage: true, scores: true };

function SampleDetail({ row }: { row: SampleRow }) {
  const rest = Object.entries(row).filter(
    ([name, value]) => !(name in IN_TABLE) && !TEXTS.includes(name) && value !== null,
  );
  return (
    <div className="flex flex-col gap-3">
      <div className="grid gap-3 lg:grid-cols-2">
        {TEXTS.filter((name) => row[name] !== undefined && row[name] !== null).map((name) => (
          <section key={name} className="min-w-0">
            <h2 className="pb-1 text-muted text-xs">{formatName(name)}</h2>
            <pre className="max-h-72 overflow-auto whitespace-pre-wrap break-words rounded-2 border border-line bg-surface p-2 font-mono text-xs">
              {sampleText(row[name])}
            </pre>
          </section>
        ))}
      </div>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-muted text-xs">
        {rest.map(([name, value]) => (
          <span key={name}>
            {formatName(name)}: <span className="font-mono text-text">{sampleText(value)}</span>
          </span>
        ))}
        <span className="flex-1" />
        <Button size="small" look="quiet" icon={<Copy size={12} />} onClick={() => copySample(row)}>
          Copy as JSON
        </Button>
      </div>
    </div>
  );
}

export function SourceNotes() {
  return useSourceNotes().map((note) => (
    <p key={note} className="flex items-start gap-2 px-3 py-1 font-sans text-muted text-xs">
      <Info size={14} className="mt-px shrink-0" aria-hidden="true" />
      {note}
    </p>
  ));
}

/** What the author says of where the rows come from, each thing once: how answers are written, say. */
function useSourceNotes(): string[] {
  const catalog = useCatalog();
  const notes = useDocument((state) => sourceNotes(catalog, state.document).join("\n\n"));
  return notes === "" ? [] : notes.split("\n\n");
}

function sourceNotes(catalog: Catalog, { nodes }: LoopDocument): string[] {
  const found = Object.values(nodes)
    .filter(({ kind }) => catalog.kinds[kind]?.inputs.length === 0)
    .map(({ note }) => (typeof note === "string" ? note.trim() : ""));
  return [...new Set(found)].filter((note) => note !== "");
}
