import { useDocument, useOpenLoop } from "@/document/context";
import { hasMetric, STATE_HEIGHT } from "@/document/geometry";
import { useLive } from "@/live/hooks";
import { MetricStrip } from "./MetricStrip";
import { PaceChip } from "./PaceChip";
import { StageRates } from "./StageRates";

/** What a node does in the watched run: its main number, whether it works or waits, its rate, its progress. */
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
    <div className="loop-node-live tabular">
      {isMeasured ? <MetricStrip node={node} /> : null}
      <div className="loop-node-pace" style={{ height: STATE_HEIGHT }}>
        <PaceChip node={node} />
        <StageRates node={node} />
      </div>
      {done === null ? null : (
        <span className="loop-node-progress" style={{ transform: `scaleX(${done})` }} />
      )}
    </div>
  );
}
