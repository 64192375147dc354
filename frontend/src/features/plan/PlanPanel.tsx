import { Route } from "lucide-react";
import type { PlannedPhase, PlannedProbe } from "@/api/types";
import { useSync } from "@/document/context";
import { Empty, Loading } from "@/ui/States";
import { Choices } from "./Choices";
import { StageChain } from "./StageChain";

/** What runs, in which order, over how many rows: a card for each phase, then the evaluations, then what was chosen. */
export function PlanPanel() {
  const check = useSync((state) => state.check);
  if (!check) return <Loading label="Planning" />;
  const { plan } = check;
  if (!plan) {
    return (
      <Empty icon={<Route size={24} />} title="No plan yet">
        The plan shows what runs, over how many rows, once the loop has no errors.
      </Empty>
    );
  }
  return (
    <section
      aria-label="Plan"
      tabIndex={0}
      className="flex h-full min-h-0 flex-col gap-3 overflow-y-auto p-3"
    >
      {plan.phases.map((phase) => (
        <PhaseCard key={phase.index} phase={phase} />
      ))}
      {plan.probes.map((probe) => (
        <ProbeCard key={probe.node} probe={probe} />
      ))}
      <Choices decisions={plan.decisions} />
    </section>
  );
}

function PhaseCard({ phase }: { phase: PlannedPhase }) {
  return (
    <article
      aria-label={`Phase ${phase.name}`}
      className="shrink-0 rounded-2 border border-line bg-surface p-3"
    >
      <h3 className="flex flex-wrap items-baseline gap-x-3 text-sm">
        <b>{phase.name}</b>
        <span className="text-muted text-xs">
          {phase.ends}
          {phase.rounds > 1 ? `, ${phase.rounds} times` : ""}
        </span>
      </h3>
      <StageChain stages={phase.rows} />
      {phase.updates.map((update) => (
        <p key={update} className="mt-1.5 text-muted text-xs">
          {update}
        </p>
      ))}
    </article>
  );
}

function ProbeCard({ probe }: { probe: PlannedProbe }) {
  return (
    <article
      aria-label={`Evaluation ${probe.node}`}
      className="shrink-0 rounded-2 border border-line border-dashed bg-surface p-3"
    >
      <h3 className="text-xs">{probe.text}</h3>
      <StageChain stages={probe.rows} />
    </article>
  );
}
