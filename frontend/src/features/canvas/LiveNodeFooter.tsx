import { useDocument, useOpenLoop } from "@/document/context";
import { hasMetric, STATE_HEIGHT } from "@/document/geometry";
import { useLive } from "@/live/hooks";
import { Tooltip } from "@/ui/Tooltip";
import { MetricStrip } from "./MetricStrip";
import { PaceChip } from "./PaceChip";
import { mainRate, stageRates, wholeText } from "./stageText";

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

/** Rows a second of a node's main stage; on hover those of all, with tokens. */
function StageRates({ node }: { node: string }) {
  const rate = useLive("gauges", (live) => mainRate(stageRates(live.state.gauges, node)), "");
  if (rate === "") return null;
  const [, number, unit, rest] = /^(\S+) (\S+?)(\/.*)$/.exec(rate) ?? ["", rate, "", ""];
  return (
    <Tooltip text={<AllStages node={node} />} side="top">
      <span className="stage-rate">
        {number}
        <span className="stage-rate-unit"> {unit}</span>
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
