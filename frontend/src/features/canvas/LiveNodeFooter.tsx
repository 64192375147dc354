import { Flame } from "lucide-react";
import { liveHeight } from "@/document/geometry";
import { formatShare } from "@/lib/format";
import { useIsBottleneck, useLive } from "@/live/hooks";
import { Tooltip } from "@/ui/Tooltip";
import { StageRates } from "./StageRates";

interface LiveNodeFooterProps {
  node: string;
  /** How many stages have a line of their own. */
  lines: number;
}

/** What a node does in the watched run: rates of its stages, share of the step, progress. */
export function LiveNodeFooter({ node, lines }: LiveNodeFooterProps) {
  const busy = useLive("gauges", (live) => live.state.gauges?.nodes?.[node]?.busy ?? null, null);
  const isEvaluation = useLive(
    "gauges",
    (live) => live.state.gauges?.nodes?.[node]?.evaluation ?? false,
    false,
  );
  const done = useLive(
    "gauges",
    (live) => {
      const works = live.state.gauges?.at_work ?? [];
      const progress = works.find((one) => one.node === node && one.progress?.total)?.progress;
      return progress ? Math.min(1, progress.done / progress.total) : null;
    },
    null,
  );
  const isBottleneck = useIsBottleneck(node);

  return (
    <footer className="loop-node-live tabular" style={{ height: liveHeight(lines) }}>
      <StageRates node={node} lines={lines} />
      <span className="flex h-[18px] items-center gap-2">
        <span
          className="loop-node-busy"
          title={isEvaluation ? "Share of the time, in evaluations" : "Share of the step's time"}
        >
          <span style={{ transform: `scaleX(${Math.min(1, busy ?? 0)})` }} />
        </span>
        <span className="whitespace-nowrap">{busyText(busy, isEvaluation)}</span>
        {isBottleneck ? (
          <Tooltip text="Bottleneck: most of the step's time goes here" side="top">
            <span className="loop-node-bottleneck">
              <Flame size={11} aria-hidden="true" /> bottleneck
            </span>
          </Tooltip>
        ) : null}
      </span>
      {done === null ? null : (
        <span className="loop-node-progress" style={{ transform: `scaleX(${done})` }} />
      )}
    </footer>
  );
}

function busyText(busy: number | null, isEvaluation: boolean): string {
  if (busy === null) return "";
  return isEvaluation ? `${formatShare(busy)} · evaluates` : formatShare(busy);
}
