import { useLive } from "@/live/hooks";
import type { LiveRun } from "@/live/LiveRun";
import { Tooltip } from "@/ui/Tooltip";
import { mainRates, rateText, stageRates, wholeText } from "./stageText";

interface StageRatesProps {
  node: string;
  /** How many stages there is room for. */
  lines: number;
}

/** Rows a second of a node's main stages; on hover those of all, with tokens. */
export function StageRates({ node, lines }: StageRatesProps) {
  const text = useLive(
    "gauges",
    (live) => mainRates(stageRates(live.state.gauges, node), lines).map(rateText).join("\n"),
    "",
  );
  const hasBegun = useLive("status", (live) => !isBeforeRunning(live), true);
  const rest = useLive("gauges", (live) => restText(live, node), "");
  if (text === "")
    return <span className="truncate text-faint">{hasBegun ? rest : "starting"}</span>;
  return (
    <Tooltip text={<AllStages node={node} />} side="top">
      <span className="flex min-w-0 flex-col">
        {text.split("\n").map((line) => {
          const [stage, rate] = line.split("\t");
          return (
            <span key={stage} className="flex gap-1">
              <span className="truncate">{stage}</span>
              <span className="ml-auto whitespace-nowrap text-text">{rate}</span>
            </span>
          );
        })}
      </span>
    </Tooltip>
  );
}

/** Whether the run still waits, for another one or for its workers. */
function isBeforeRunning(live: LiveRun): boolean {
  const state = live.run?.state ?? live.state.state;
  return state === "queued" || state === "starting";
}

/** Why a node has no rate. */
function restText(live: LiveRun, node: string): string {
  const { gauges } = live.state;
  const hasStepped = (gauges?.step_seconds ?? null) !== null;
  if (hasStepped && gauges?.nodes?.[node] === undefined) return "rests in this phase";
  return live.connection === "ended" ? "no rate" : "no rate yet";
}

function AllStages({ node }: { node: string }) {
  const text = useLive(
    "gauges",
    (live) => stageRates(live.state.gauges, node).map(wholeText).join("\n"),
    "",
  );
  return <span className="tabular whitespace-pre-line">{text}</span>;
}
