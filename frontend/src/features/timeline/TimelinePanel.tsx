import { useMemo, useState } from "react";
import { formatCount, formatRate, formatSeconds, formatShare } from "@/lib/format";
import { useLive, useLiveRun, useLiveVersion, useRecord } from "@/live/hooks";
import type { StageSpan } from "@/live/state";
import { useDocument, useNodeColors } from "@/state/document/context";
import { showField } from "@/state/selection";
import { Segmented } from "@/ui/Segmented";
import { Empty } from "@/ui/States";
import { AXIS, LOW_ROW, type Painting, ROW } from "./draw";
import {
  type Grouping,
  idleShare,
  lastSeconds,
  originOf,
  overlapShare,
  type Range,
  type Share,
  type StepShares,
  stepShares,
  stepStarts,
  type TimelineRow,
  timelineRows,
} from "./rows";
import { TimelineCanvas } from "./TimelineCanvas";

type Window = "15" | "60" | "600" | "all";

const WINDOWS: readonly { value: Window; label: string }[] = [
  { value: "15", label: "15 s" },
  { value: "60", label: "1 min" },
  { value: "600", label: "10 min" },
  { value: "all", label: "All" },
];

const SHORT_STEP = 1;

export function TimelinePanel() {
  const live = useLiveRun();
  const version = useLiveVersion("spans");
  const nodes = useDocument((state) => Object.keys(state.document.nodes).join());
  const [chosen, setChosen] = useState<Window | null>(null);
  const [grouping, setGrouping] = useState<Grouping>("byPool");
  const [manual, setManual] = useState<Range | null>(null);
  const [hovered, setHovered] = useState<StageSpan | null>(null);
  const gauges = useLive("gauges", (run) => run.state.gauges);
  const spans = live?.state.spans ?? [];
  const hasRanks = spans.some((one) => one.ranks.length > 1);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version says that the spans changed
  const rows = useMemo(
    () => timelineRows(spans, nodes.split(","), grouping),
    [spans, version, nodes, grouping],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: likewise
  const shares = useMemo(() => stepShares(gauges, spans), [gauges, spans, version]);
  const isShort = shares.step !== null && shares.step < SHORT_STEP;
  const span = chosen ?? (isShort ? "15" : "60");
  const now = lastMoment(spans, live?.connection === "live");
  const range =
    manual ?? lastSeconds(spans, span === "all" ? Number.POSITIVE_INFINITY : Number(span), now);
  const overlap = overlapShare(rows, range, now);
  const record = useRecord();
  const started = useLive("status", () => record?.run?.started_at ?? null);
  const rowHeight = grouping === "byPool" ? ROW : LOW_ROW;
  return (
    <section aria-label="Timeline" className="flex h-full min-h-0 flex-col bg-surface">
      <div className="flex min-h-9 shrink-0 flex-wrap items-center gap-x-3 px-3 text-xs">
        <h2 className="font-semibold text-sm">Timeline</h2>
        <TimelineText hovered={hovered} shares={shares} now={now} isUnderWay={spans.length > 0} />
        <span className="flex items-center gap-1.5 text-muted max-2xl:hidden">
          <span className="hatched size-3 rounded-[3px]" aria-hidden="true" /> idle
        </span>
        {overlap === null ? null : (
          <span className="tabular text-muted">
            Pools overlap <b className="text-text">{formatShare(overlap)}</b>
          </span>
        )}
        <Segmented
          label="Rows"
          value={grouping}
          options={[
            { value: "byPool", label: "Pools" },
            ...(hasRanks ? [{ value: "byRank" as const, label: "Ranks" }] : []),
            { value: "byStage", label: "Stages" },
          ]}
          onChange={setGrouping}
        />
        <Segmented
          label="Window"
          value={manual ? ("" as Window) : span}
          options={WINDOWS}
          onChange={(value) => {
            setChosen(value);
            setManual(null);
          }}
        />
      </div>
      {spans.length === 0 ? (
        <Empty title="Nothing has run yet">Each stage appears here as soon as it starts.</Empty>
      ) : (
        <div className="flex min-h-0 flex-1 overflow-y-auto">
          <TimelineRows rows={rows} range={range} now={now} rowHeight={rowHeight} />
          <TimelineCanvas
            rows={rows}
            rowHeight={rowHeight}
            range={range}
            origin={originOf(started, spans, now)}
            now={now}
            steps={stepStarts(spans, range)}
            hovered={hovered}
            onHover={setHovered}
            onRange={setManual}
          />
        </div>
      )}
    </section>
  );
}

function lastMoment(spans: readonly StageSpan[], isLive: boolean): number {
  const last = spans.at(-1);
  const known = last ? Math.max(last.start, last.end ?? last.start) : Date.now();
  const isOpen = spans.slice(-20).some((span) => span.end === null);
  // The machine that trains may have another clock: never run far ahead of what it said.
  return isLive && isOpen ? Math.max(known, Math.min(Date.now(), known + 60_000)) : known;
}

type TimelineRowsProps = Pick<Painting, "rows" | "range" | "now" | "rowHeight">;

function TimelineRows({ rows, range, now, rowHeight }: TimelineRowsProps) {
  const colors = useNodeColors();
  return (
    <ul className="w-44 shrink-0 max-lg:w-32" style={{ paddingTop: AXIS }}>
      {rows.map((row) => {
        const node = row.node ?? firstNode(row);
        const idle = row.showsIdle ? idleShare(row, range, now) : null;
        return (
          <li key={row.key} style={{ height: rowHeight }}>
            <button
              type="button"
              className="flex h-full w-full items-center gap-2 px-3 text-left text-xs hover:bg-hover"
              title={`${row.label} ${row.note}${idle === null ? "" : `: idle ${formatShare(idle)} of what is shown`}`}
              onClick={() => showField(node)}
            >
              <span
                className="size-2 shrink-0 rounded-[2px]"
                style={{ background: node ? colors[node] : "var(--muted)" }}
              />
              <span className="min-w-0 flex-1 truncate font-medium">{row.label}</span>
              <span className="tabular shrink-0 text-muted max-lg:hidden">
                {row.note || (idle === null ? "" : `${formatShare(idle)} idle`)}
              </span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

function firstNode(row: TimelineRow): string | null {
  const sums = new Map<string, number>();
  for (const { span, start, end } of row.bars) {
    sums.set(span.node, (sums.get(span.node) ?? 0) + (end ?? start) - start);
  }
  return [...sums].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? null;
}

interface TimelineTextProps {
  hovered: StageSpan | null;
  shares: StepShares;
  now: number;
  isUnderWay: boolean;
}

export function TimelineText({ hovered, shares, now, isUnderWay }: TimelineTextProps) {
  return (
    <p className="tabular min-w-24 flex-1 truncate" title={shares.stages.map(shareText).join("\n")}>
      {hovered ? (
        <SpanText span={hovered} now={now} />
      ) : shares.stages.length > 0 ? (
        <StepText shares={shares} />
      ) : isUnderWay ? (
        <span className="text-muted">The first step is in progress.</span>
      ) : null}
    </p>
  );
}

function SpanText({ span, now }: { span: StageSpan; now: number }) {
  const seconds = ((span.end ?? now) - span.start) / 1000;
  return (
    <>
      <b>{span.stage}</b> step {span.step ?? "–"} · {formatSeconds(seconds)}
      {span.samples ? ` · ${formatCount(span.samples)} rows` : ""}
      {span.tokens && span.end
        ? ` · ${formatRate(span.tokens / Math.max(1e-3, seconds), "tok")}`
        : ""}
      {span.starved > 0.001 ? ` · starved ${formatSeconds(span.starved)}` : ""}
      {span.blocked > 0.001 ? ` · blocked ${formatSeconds(span.blocked)}` : ""}
    </>
  );
}

/** One pool: its stages add up to the step. Several: they overlap, so each says how long it worked. */
function StepText({ shares }: { shares: StepShares }) {
  const { step, stages, pools } = shares;
  const isSplit = pools.length > 0;
  return (
    <>
      <b>step {formatSeconds(step)}</b>
      {isSplit ? " · busy: " : ": "}
      {(isSplit ? pools : stages.slice(0, 5)).map(shareText).join(isSplit ? " · " : " + ")}
    </>
  );
}

function shareText(share: Share): string {
  return `${share.name} ${formatSeconds(share.seconds)}`;
}
