import { useLive } from "@/live/hooks";
import { Tooltip } from "@/ui/Tooltip";
import { mainRates, rateText, stageRates, wholeText } from "./stageText";

interface StageRatesProps {
  node: string;
  /** How many stages there is room for. */
  lines: number;
}

/** Rows and tokens a second of a node's main stages; on hover those of all. */
export function StageRates({ node, lines }: StageRatesProps) {
  const text = useLive(
    "gauges",
    (live) => mainRates(stageRates(live.state.gauges, node), lines).map(rateText).join("\n"),
    "",
  );
  const isOver = useLive("status", (live) => live.connection === "ended", false);
  if (text === "") {
    return <span className="truncate text-faint">{isOver ? "no rate" : "no rate yet"}</span>;
  }
  return (
    <Tooltip text={<AllStages node={node} />} side="top">
      <span className="flex min-w-0 flex-col">
        {text.split("\n").map((line) => (
          <span key={line.split(" ")[0]} className="truncate">
            {line}
          </span>
        ))}
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
