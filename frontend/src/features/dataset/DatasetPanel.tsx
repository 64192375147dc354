import { Database } from "lucide-react";
import { useState } from "react";
import { previewOverlap, previewRows } from "@/api/routes";
import type { DatasetPage, Overlap } from "@/api/types";
import { datasetsOf } from "@/document/datasets";
import { ROLES } from "@/document/tables";
import { formatCount, formatPlural, formatShare, formatWhole } from "@/lib/format";
import { isObject } from "@/lib/paths";
import { setField } from "@/state/commands/fields";
import { useCatalog, useDocument, useOpenLoop } from "@/state/document/context";
import { select, useSelection } from "@/state/selection";
import { Badge } from "@/ui/Badge";
import { LabelledSelect } from "@/ui/LabelledSelect";
import { Pager } from "@/ui/Pager";
import { Segmented } from "@/ui/Segmented";
import { Select } from "@/ui/Select";
import { Empty } from "@/ui/States";
import { Preview, usePreviewQuery } from "./preview";
import { TokensView } from "./TokensView";

type View = "page" | "encoded" | "shared";

const VIEWS: readonly { value: View; label: string; title: string }[] = [
  { value: "page", label: "Rows and columns", title: "Rows as the loop sees them" },
  {
    value: "encoded",
    label: "Tokens and lengths",
    title: "What a model reads and what it learns from",
  },
  { value: "shared", label: "Duplicates and leaks", title: "Rows that another dataset also has" },
];

export function DatasetPanel() {
  const catalog = useCatalog();
  const document = useDocument((state) => state.document);
  const selected = useSelection((state) => (state.nodes.length === 1 ? state.nodes[0] : undefined));
  const [chosen, setChosen] = useState<string | null>(null);
  const [view, setView] = useState<View>("page");
  const datasets = datasetsOf(catalog, document);
  const node =
    [selected, chosen].find(
      (name) => name !== null && name !== undefined && datasets.includes(name),
    ) ?? datasets[0];
  if (node === undefined) {
    return (
      <Empty icon={<Database size={24} />} title="No data yet">
        Add a dataset to see its rows, their tokens and its overlap with other datasets.
      </Empty>
    );
  }
  return (
    <div className="flex h-full min-h-0 flex-col text-sm">
      <div className="flex shrink-0 flex-wrap items-center gap-x-4 gap-y-2 border-line border-b px-4 py-2 text-xs">
        <LabelledSelect
          label="Dataset"
          value={node}
          options={datasets.map((name) => ({ value: name, label: name }))}
          onChange={(name) => {
            setChosen(name);
            select({ nodes: [name] });
          }}
        />
        <Segmented label="What is shown" value={view} options={VIEWS} onChange={setView} />
      </div>
      {view === "page" ? <RowsView key={node} node={node} /> : null}
      {view === "encoded" ? <TokensView key={node} node={node} /> : null}
      {view === "shared" ? <OverlapView key={node} node={node} datasets={datasets} /> : null}
    </div>
  );
}

function OverlapView({ node, datasets }: { node: string; datasets: readonly string[] }) {
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

const PAGE = 20;

export function RowsView({ node }: { node: string }) {
  const [offset, setOffset] = useState(0);
  const asked = usePreviewQuery(["rows", node, offset], (yaml, signal) =>
    previewRows({ what: "rows", yaml, node, offset, count: PAGE }, signal),
  );
  return (
    <Preview asked={asked} loading="Reading the rows" failed="The rows could not be read">
      {(page) => (
        <>
          {page.unread.length > 0 ? (
            <p role="status" className="shrink-0 bg-warning-soft px-4 py-1.5 text-warning text-xs">
              The loop reads {page.unread.map((name) => `“${name}”`).join(", ")}, which these rows
              lack. Map a column to it in the dataset’s settings.
            </p>
          ) : null}
          <div
            className="min-h-0 flex-1 overflow-auto"
            role="region"
            aria-label="Rows"
            tabIndex={0}
          >
            <table className="border-separate border-spacing-0 text-xs">
              <thead className="sticky top-0 z-10 bg-surface text-left align-top">
                <tr className="[&>th]:border-line [&>th]:border-b [&>th]:px-3 [&>th]:py-2 [&>th]:font-normal">
                  <th className="w-12 text-right text-muted">Row</th>
                  {page.columns.map((column) => (
                    <th key={column.name} className="min-w-40 max-w-96">
                      <Column node={node} column={column} />
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
              {formatWhole(offset + 1)} to {formatWhole(Math.min(offset + PAGE, page.total))} of{" "}
              {formatWhole(page.total)} rows
            </span>
            <span className="flex-1" />
            <Pager
              size="small"
              hasPrevious={offset > 0}
              hasNext={offset + PAGE < page.total}
              onPrevious={() => setOffset(Math.max(0, offset - PAGE))}
              onNext={() => setOffset(offset + PAGE)}
            />
          </nav>
        </>
      )}
    </Preview>
  );
}

const OWN_NAME = "";

/** What a column is in the loop: chosen here, it is mapped in the dataset's settings. */
function UseAs({ node, column }: ColumnProps) {
  const { store } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const mapped = useDocument((state) => state.document.nodes[node]?.columns);
  if (isReadonly) return null;
  const { source, name, is_mapped: isMapped } = column;
  const use = (role: string) => {
    const others = Object.entries(isObject(mapped) ? mapped : {}).filter(
      ([key, from]) => key !== role && !(from === source && key === name),
    );
    const columns = Object.fromEntries(role === OWN_NAME ? others : [...others, [role, source]]);
    store.dispatch(
      setField,
      { node, path: ["columns"], value: Object.keys(columns).length > 0 ? columns : undefined },
      { label: role === OWN_NAME ? `Unmap ${source}` : `Use ${source} as ${role}` },
    );
  };
  const roles = [...new Set([...(isMapped ? [name] : []), ...ROLES])].filter(
    (role) => role !== source,
  );
  return (
    <span className="mt-1 block max-w-44">
      <Select
        label={`Use ${name} as`}
        value={isMapped ? name : OWN_NAME}
        options={[
          { value: OWN_NAME, label: "use as…", isUnset: true },
          ...roles.map((role) => ({ value: role, label: role })),
        ]}
        onChange={use}
      />
    </span>
  );
}

interface ColumnProps {
  node: string;
  column: DatasetPage["columns"][number];
}

function Column({ node, column }: ColumnProps) {
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
      <UseAs node={node} column={column} />
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
