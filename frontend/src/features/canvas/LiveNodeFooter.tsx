import { Flame } from "lucide-react";
import { formatRate, formatShare } from "@/lib/format";
import { useIsBottleneck, useLive } from "@/live/hooks";
import { Tooltip } from "@/ui/Tooltip";

/** What a node does in the watched run: rates, share of the step, progress. */
export function LiveNodeFooter({ node }: { node: string }) {
  const samples = useLive(
    "gauges",
    (live) => live.state.gauges?.nodes?.[node]?.samples_per_second ?? null,
    null,
  );
  const tokens = useLive(
    "gauges",
    (live) => live.state.gauges?.nodes?.[node]?.tokens_per_second ?? null,
    null,
  );
  const busy = useLive("gauges", (live) => live.state.gauges?.nodes?.[node]?.busy ?? null, null);
  const done = useLive(
    "gauges",
    (live) => {
      const progress = live.state.gauges?.progress;
      if (!progress?.total || !progress.stage.startsWith(`${node}.`)) return null;
      return Math.min(1, progress.done / progress.total);
    },
    null,
  );
  const isBottleneck = useIsBottleneck(node);
  const isOver = useLive("status", (live) => live.connection === "ended", false);
  const hasNumbers = samples !== null || tokens !== null;

  return (
    <footer className="loop-node-live tabular">
      <span className="truncate" title="Rows and tokens a second over the last steps">
        {hasNumbers ? null : (
          <span className="text-faint">{isOver ? "no rate" : "no rate yet"}</span>
        )}
        {samples === null ? null : formatRate(samples, "rows")}
        {samples !== null && tokens !== null ? " · " : null}
        {tokens === null ? null : formatRate(tokens, "tok")}
      </span>
      <span className="flex h-4 items-center gap-2">
        <span className="loop-node-busy" title="Share of the step's time">
          <span style={{ transform: `scaleX(${Math.min(1, busy ?? 0)})` }} />
        </span>
        <span className="whitespace-nowrap">{busy === null ? "" : formatShare(busy)}</span>
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
