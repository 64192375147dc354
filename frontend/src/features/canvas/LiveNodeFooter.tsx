import { Ban, Flame, Hourglass } from "lucide-react";
import { hasMetric, METRIC_HEIGHT, STATE_HEIGHT } from "@/graph/geometry";
import { formatMetric, formatShare } from "@/lib/format";
import { useLive } from "@/live/hooks";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { Tooltip } from "@/ui/Tooltip";
import { lineOf, mainMetric } from "./mainMetric";
import { hasNotBegun, NO_PACE, type PaceState, paceOf } from "./pace";
import { mainRate, stageRates, wholeText } from "./stageText";

export function LiveNodeFooter({ node }: { node: string }) {
  const { catalog } = useOpenLoop();
  const isMeasured = useDocument((state) => hasMetric(catalog, state.document, node));
  const done = useLive(
    "gauges",
    (live) => {
      const works = live.state.gauges?.at_work ?? [];
      const progress = works.find((one) => one.node === node && one.progress?.total)?.progress;
      return progress ? Math.min(1, progress.done / progress.total) : null;
    },
    null,
  );
  return (
    <div className="relative flex flex-1 flex-col justify-center border-t border-line text-muted tabular">
      {isMeasured ? <MetricStrip node={node} /> : null}
      <div
        className="@container flex items-center gap-2 pr-2 pl-2.5 whitespace-nowrap"
        style={{ height: STATE_HEIGHT }}
      >
        <PaceChip node={node} />
        <StageRates node={node} />
      </div>
      {done === null ? null : (
        <span
          className="absolute right-0 bottom-0 left-0 h-0.5 bg-(--node-color) origin-left"
          style={{ transform: `scaleX(${done})` }}
        />
      )}
    </div>
  );
}

function StageRates({ node }: { node: string }) {
  const rate = useLive("gauges", (live) => mainRate(stageRates(live.state.gauges, node)), "");
  if (rate === "") return null;
  const [, number, unit, rest] = /^(\S+) (\S+?)(\/.*)$/.exec(rate) ?? ["", rate, "", ""];
  return (
    // Where there is no room for both, the number stands without what it counts, which is still read out.
    <Tooltip text={<AllStages node={node} />} side="top">
      <span className="stage-rate ml-auto flex-none text-text">
        {number}
        <span className="@max-[209px]:inline-block @max-[209px]:w-0 @max-[209px]:overflow-hidden @max-[209px]:align-bottom whitespace-pre">
          {" "}
          {unit}
        </span>
        {rest}
      </span>
    </Tooltip>
  );
}

function AllStages({ node }: { node: string }) {
  const text = useLive(
    "gauges",
    (live) => stageRates(live.state.gauges, node).map(wholeText).join("\n"),
    "",
  );
  return <span className="tabular whitespace-pre-line">{text}</span>;
}

const WIDTH = 56;
const HEIGHT = 26;
const NO_METRIC = { value: "", title: "", line: "" };

function MetricStrip({ node }: { node: string }) {
  const { catalog } = useOpenLoop();
  const { value, title, line } = useLive(
    "series",
    (live) => {
      const metric = mainMetric(catalog, live, node);
      if (!metric) return NO_METRIC;
      const { title, series } = metric;
      return {
        value: formatMetric(series.last?.value),
        title,
        line: lineOf(series, WIDTH, HEIGHT),
      };
    },
    NO_METRIC,
  );
  return (
    <div className="flex items-center gap-2 px-3 tabular" style={{ height: METRIC_HEIGHT }}>
      {title === "" ? (
        <span className="text-faint">no value yet</span>
      ) : (
        <>
          <span className="min-w-0 flex-1">
            <span className="block overflow-hidden text-xl/6 text-text font-semibold">{value}</span>
            <span className="block leading-[15px] truncate" title={title}>
              {title.toLowerCase()}
            </span>
          </span>
          <svg
            className="flex-none fill-none stroke-(--node-color) stroke-[1.5]"
            strokeLinejoin="round"
            width={WIDTH}
            height={HEIGHT + 4}
            viewBox={`0 -2 ${WIDTH} ${HEIGHT + 4}`}
            role="img"
            aria-label={`${title} so far`}
          >
            {line === "" ? null : (
              <path d={`${line}V${HEIGHT}H0Z`} className="fill-(--node-soft) stroke-none" />
            )}
            <path d={line} />
          </svg>
        </>
      )}
    </div>
  );
}

const HELP: Partial<Record<PaceState, string>> = {
  busy: "Share of the step's time in which its stages run.",
  starved: "Waiting for rows: its worker was idle, since its input was not ready yet.",
  blocked: "Its input was ready, but its worker was still busy.",
  evaluates: "Runs in evaluations only: their share of the time.",
  rests: "None of its stages runs in this phase.",
};

const CHIP =
  "inline-flex h-5 min-w-0 items-center gap-1 overflow-hidden rounded-[10px] px-[7px] font-medium";
const PACE_LOOKS: Partial<Record<PaceState, string>> = {
  busy: "bg-(--node-soft) text-(--node-color)",
  starved:
    "bg-[repeating-linear-gradient(-45deg,var(--sunken)_0_4px,var(--pressed)_4px_8px)] text-text",
  blocked: "bg-warning-soft text-warning",
};

function PaceChip({ node }: { node: string }) {
  const pace = useLive("gauges", (live) => paceOf(live, node), NO_PACE);
  const isStarting = useLive("status", hasNotBegun, false);
  const isOver = useLive("status", (live) => live.connection === "ended", false);
  const { bottleneck, bottleneckShare } = pace;
  const state = isStarting ? "starting" : pace.state;
  if (bottleneck !== null) {
    return (
      <Tooltip side="top" text={`Bottleneck: ${node}.${bottleneck} takes most of the step's time.`}>
        <span className={`${CHIP} bg-warning-soft text-warning`} data-state="bottleneck">
          <Flame size={12} role="img" aria-label="bottleneck" /> {bottleneck}{" "}
          {bottleneckShare === null ? "" : formatShare(bottleneckShare)}
        </span>
      </Tooltip>
    );
  }
  return (
    <Tooltip side="top" text={HELP[state] ?? ""}>
      <span className={`${CHIP} ${PACE_LOOKS[state] ?? "bg-sunken text-muted"}`} data-state={state}>
        {state === "starved" ? <Hourglass size={12} aria-hidden="true" /> : null}
        {state === "blocked" ? <Ban size={12} aria-hidden="true" /> : null}
        {wordsOf(state, formatShare(pace.share), isOver)}
      </span>
    </Tooltip>
  );
}

function wordsOf(state: PaceState, share: string, isOver: boolean): string {
  switch (state) {
    case "starting":
      return "starting";
    case "rests":
      return "idle in this phase";
    case "none":
      return isOver ? "no rate" : "no rate yet";
    case "evaluates":
      return `eval ${share}`;
    default:
      return `${state} ${share}`;
  }
}
