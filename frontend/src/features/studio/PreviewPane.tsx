import { useQuery } from "@tanstack/react-query";
import { Play, X } from "lucide-react";
import { useState } from "react";
import { errorMessage } from "@/api/client";
import { fetchPreviewLimits, previewScores } from "@/api/routes";
import type { RowsFrom, ScoredRows } from "@/api/types";
import type { Payee } from "@/document/rewards";
import type { Colors } from "@/lib/colors";
import { formatPlural, formatSeconds } from "@/lib/format";
import type { Preview } from "@/state/usePreview";
import { Button } from "@/ui/Button";
import { classes } from "@/ui/classes";
import { LabelledSelect } from "@/ui/LabelledSelect";
import { Segmented } from "@/ui/Segmented";
import { Empty, Loading } from "@/ui/States";
import { useSeconds } from "@/ui/useSeconds";
import { Spread } from "./Distributions";
import { RowsChoice } from "./RowsChoice";
import { ScoreTable } from "./ScoreTable";
import type { Sorting, Table } from "./table";

const SORTINGS: readonly { value: Sorting; label: string }[] = [
  { value: "given", label: "original order" },
  { value: "disagreement", label: "disagreement" },
  { value: "failed", label: "failed first" },
  { value: "most", label: "highest reward" },
  { value: "least", label: "lowest reward" },
];

type View = "rows" | "spread";
const VIEWS: readonly { value: View; label: string }[] = [
  { value: "rows", label: "Rows" },
  { value: "spread", label: "Distribution" },
];

const WAIT_SECONDS = 3;

interface PreviewPaneProps {
  payee: Payee;
  hasSources: boolean;
  colors: Colors;
  preview: Preview<ScoredRows>;
  table: Table | null;
  onChoose: (node: string) => void;
}

export function PreviewPane(props: PreviewPaneProps) {
  const { payee, hasSources, colors, preview, table, onChoose } = props;
  const [rows, setRows] = useState<RowsFrom | string>("Choose rows.");
  const [sorting, setSorting] = useState<Sorting>("given");
  const [view, setView] = useState<View>("rows");
  const { found, error, isPending, ask, cancel } = preview;
  const reason = !hasSources ? "Add a source first." : typeof rows === "string" ? rows : null;
  const run = () => {
    if (typeof rows === "string") return;
    ask((yaml, signal) =>
      previewScores({ what: "scores", yaml, learner: payee.node, rows }, signal),
    );
  };
  return (
    <section aria-label="Preview" className="flex min-h-0 flex-1 flex-col bg-surface">
      <div className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-2 border-line border-b px-4 py-2 text-sm">
        <h2 className="font-semibold text-base">Preview</h2>
        <RowsChoice payee={payee} onChange={setRows} />
        <span className="flex-1" />
        {isPending && typeof rows !== "string" ? <Waiting rows={rows} /> : null}
        {isPending ? (
          <Button icon={<X size={14} />} onClick={cancel}>
            Cancel
          </Button>
        ) : (
          <Button icon={<Play size={14} />} refusal={reason} onClick={run}>
            Run preview
          </Button>
        )}
      </div>
      {reason !== null && !isPending && found !== null ? (
        <p className="px-4 py-1.5 text-muted text-xs">{reason}</p>
      ) : null}
      {error === null || isPending ? null : (
        <p role="alert" className="bg-error-soft px-4 py-2 text-error text-sm">
          {errorMessage(error)}
        </p>
      )}
      {found && table ? (
        <div className="flex min-h-0 flex-1 flex-col" aria-busy={isPending}>
          <div className="flex shrink-0 items-center gap-3 px-4 py-1.5 text-muted text-xs">
            <p className="min-w-0 flex-1" role="status">
              {formatPlural(found.rows.length, "row")} in {formatSeconds(found.seconds)}
              {found.note === null ? "" : `. ${found.note}`}
              {isPending ? " · scoring again" : ""}
            </p>
            {/* Where there is no room for both beside each other. */}
            <span className="xl:hidden">
              <Segmented
                label="View of the preview"
                value={view}
                options={VIEWS}
                onChange={setView}
              />
            </span>
            <LabelledSelect label="Sort" value={sorting} options={SORTINGS} onChange={setSorting} />
          </div>
          {view === "spread" ? (
            <div className="min-h-0 flex-1 overflow-y-auto xl:hidden">
              <Spread table={table} colors={colors} />
            </div>
          ) : null}
          <div
            className={classes(
              "flex min-h-0 flex-1 flex-col",
              view === "spread" && "max-xl:hidden",
            )}
          >
            <ScoreTable table={table} sorting={sorting} colors={colors} onChoose={onChoose} />
          </div>
        </div>
      ) : isPending ? (
        <Loading label="Scoring the rows" rows={6} />
      ) : (
        <Empty title="No preview yet">
          {reason ??
            "Press Run preview: every source scores these rows, by the code that a run uses."}
        </Empty>
      )}
    </section>
  );
}

/** How long the sources were asked for, once that is a wait, and when they are stopped: code may take for ever. */
function Waiting({ rows }: { rows: RowsFrom }) {
  const seconds = useSeconds();
  const { data: most } = useQuery({
    queryKey: ["previewLimits"],
    queryFn: fetchPreviewLimits,
    staleTime: Infinity,
  });
  const limit = most?.seconds[rows.type];
  if (seconds < WAIT_SECONDS) return null;
  return (
    <span className="tabular text-muted text-xs" role="timer">
      scoring for {Math.floor(seconds)} s{limit === undefined ? "" : `, stopped after ${limit} s`}
    </span>
  );
}
