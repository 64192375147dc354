import { formatCount, formatRate, formatSeconds } from "@/lib/format";
import type { StageSpan } from "@/live/state";
import type { Share, StepShares } from "./rows";

interface TimelineTextProps {
  hovered: StageSpan | null;
  shares: StepShares;
  now: number;
  /** A stage has begun. */
  isUnderWay: boolean;
}

/** What the bar under the pointer is, else what a step is made of. */
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
      {isSplit ? " · at work in it " : ": "}
      {(isSplit ? pools : stages.slice(0, 5)).map(shareText).join(isSplit ? " · " : " + ")}
    </>
  );
}

function shareText(share: Share): string {
  return `${share.name} ${formatSeconds(share.seconds)}`;
}
