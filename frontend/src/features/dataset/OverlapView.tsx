import { useState } from "react";
import { previewOverlap } from "@/api/routes";
import type { Overlap } from "@/api/types";
import { formatCount, formatPlural, formatShare } from "@/lib/format";
import { Badge } from "@/ui/Badge";
import { LabelledSelect } from "@/ui/LabelledSelect";
import { Empty } from "@/ui/States";
import { Preview, usePreviewQuery } from "./preview";

interface OverlapViewProps {
  node: string;
  datasets: readonly string[];
}

export function OverlapView({ node, datasets }: OverlapViewProps) {
  const others = datasets.filter((name) => name !== node);
  const [other, setOther] = useState<string | null>(null);
  const test = other !== null && others.includes(other) ? other : others[0];
  const asked = usePreviewQuery(
    ["overlap", node, test],
    (yaml, signal) =>
      previewOverlap({ what: "overlap", yaml, train: node, test: test ?? "", columns: [] }, signal),
    test !== undefined,
  );
  if (test === undefined) {
    return (
      <Empty title="One dataset only">
        Add a second one, such as a test set, to find rows that occur in both.
      </Empty>
    );
  }
  return (
    <div className="min-h-0 flex-1 overflow-y-auto px-4 py-3">
      <div className="mb-3 text-muted text-xs">
        <LabelledSelect
          label={`Rows of ${node} that are also in`}
          value={test}
          options={others.map((name) => ({ value: name, label: name }))}
          onChange={setOther}
        />
      </div>
      <Preview
        asked={asked}
        loading="Comparing the rows"
        failed="The two datasets cannot be compared"
      >
        {(found) => <Found found={found} train={node} test={test} />}
      </Preview>
    </div>
  );
}

interface FoundProps {
  found: Overlap;
  train: string;
  test: string;
}

function Found({ found, train, test }: FoundProps) {
  const facts = [
    [`${test}: rows that are also in ${train}`, found.leaked, true],
    [`${test}: near-duplicates of rows in ${train}`, found.near, true],
    [`${train}: duplicate rows`, found.train_twice, false],
    [`${test}: duplicate rows`, found.test_twice, false],
  ] as const;
  return (
    <>
      <p className="mb-2 text-muted text-xs">
        {formatCount(found.train_rows)} and {formatPlural(found.test_rows, "row")} compared by{" "}
        {found.columns.join(", ")}, ignoring case and whitespace
        {found.read_all ? "" : "; only the first rows of longer datasets are read"}.
      </p>
      <dl className="mb-4 grid max-w-xl grid-cols-[1fr_auto_auto] gap-x-4 gap-y-1 text-sm">
        {facts.map(([label, count, isLeak]) => (
          <div key={label} className="contents">
            <dt>{label}</dt>
            <dd className="tabular text-right font-semibold">{formatCount(count)}</dd>
            <dd>
              <Badge tone={count === 0 ? "success" : isLeak ? "error" : "warning"}>
                {count === 0 ? "none" : isLeak ? formatShare(count / found.test_rows) : "twice"}
              </Badge>
            </dd>
          </div>
        ))}
      </dl>
      {found.pairs.length === 0 ? null : (
        <table className="w-full border-separate border-spacing-0 text-xs">
          <caption className="mb-1 text-left font-semibold text-sm">
            {found.pairs.length < found.leaked + found.near
              ? `The first ${found.pairs.length}`
              : "These rows"}
          </caption>
          <thead className="text-left text-muted">
            <tr className="[&>th]:border-line [&>th]:border-b [&>th]:px-2 [&>th]:py-1.5 [&>th]:font-medium">
              <th className="w-24">Same</th>
              <th>{train}</th>
              <th>{test}</th>
            </tr>
          </thead>
          <tbody>
            {found.pairs.map((pair) => (
              <tr
                key={`${pair.train} ${pair.test}`}
                className="[&>td]:border-line [&>td]:border-b [&>td]:px-2 [&>td]:py-1.5 [&>td]:align-top"
              >
                <td className="tabular">{formatShare(pair.similarity)}</td>
                <td className="font-mono wrap-anywhere">
                  <span className="text-muted">{pair.train + 1}. </span>
                  {pair.text}
                </td>
                <td className="font-mono wrap-anywhere">
                  <span className="text-muted">{pair.test + 1}. </span>
                  {pair.other}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
