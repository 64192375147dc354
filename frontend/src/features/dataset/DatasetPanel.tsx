import { Database } from "lucide-react";
import { useState } from "react";
import { datasetsOf } from "@/document/datasets";
import { useCatalog, useDocument } from "@/state/document/context";
import { select, useSelection } from "@/state/selection";
import { LabelledSelect } from "@/ui/LabelledSelect";
import { Segmented } from "@/ui/Segmented";
import { Empty } from "@/ui/States";
import { OverlapView } from "./OverlapView";
import { RowsView } from "./RowsView";
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
