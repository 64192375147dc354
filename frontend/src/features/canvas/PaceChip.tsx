import { Ban, Flame, Hourglass } from "lucide-react";
import { formatShare } from "@/lib/format";
import { useLive } from "@/live/hooks";
import { Tooltip } from "@/ui/Tooltip";
import { hasNotBegun, type PaceState, paceOf } from "./pace";

const HELP: Partial<Record<PaceState, string>> = {
  busy: "Share of the step's time in which its stages run.",
  starved: "Waiting for rows: its worker was idle, since its input was not ready yet.",
  blocked: "Its input was ready, but its worker was still busy.",
  evaluates: "Runs in evaluations only: their share of the time.",
  rests: "None of its stages runs in this phase.",
};

/** What a node does, in words: state is never told by colour alone. */
export function PaceChip({ node }: { node: string }) {
  const told = useLive(
    "gauges",
    (live) => {
      const { state, share, bottleneck } = paceOf(live, node);
      return `${state}|${formatShare(share)}|${bottleneck ?? ""}`;
    },
    "none||",
  );
  const isStarting = useLive("status", hasNotBegun, false);
  const isOver = useLive("status", (live) => live.connection === "ended", false);
  const [known = "none", share = "", bottleneck = ""] = told.split("|") as [
    PaceState,
    string,
    string,
  ];
  const state = isStarting ? "starting" : known;
  if (bottleneck !== "") {
    const [stage = "", own = ""] = bottleneck.split("\t");
    const words = own === "" ? stage : `${stage} ${formatShare(Number(own))}`;
    return (
      <Tooltip side="top" text={`Bottleneck: ${node}.${stage} takes most of the step's time.`}>
        <span className="pace-chip" data-state="bottleneck">
          <Flame size={12} role="img" aria-label="bottleneck" /> {words}
        </span>
      </Tooltip>
    );
  }
  return (
    <Tooltip side="top" text={HELP[state] ?? ""}>
      <span className="pace-chip" data-state={state}>
        {state === "starved" ? <Hourglass size={12} aria-hidden="true" /> : null}
        {state === "blocked" ? <Ban size={12} aria-hidden="true" /> : null}
        {wordsOf(state, share, isOver)}
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
