import { useLive } from "@/live/hooks";
import { Tooltip } from "@/ui/Tooltip";
import { mainRate, stageRates, wholeText } from "./stageText";

/** Rows a second of a node's main stage; on hover those of all, with tokens. */
export function StageRates({ node }: { node: string }) {
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
