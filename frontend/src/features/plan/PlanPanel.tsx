import { Route } from "lucide-react";
import type { PlannedDecision, PlannedPhase, PlannedProbe } from "@/api/types";
import { useSync } from "@/state/document/context";
import { showField } from "@/state/selection";
import { Empty, Loading } from "@/ui/States";
import { StageChain } from "./StageChain";

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

function Choices({ decisions }: { decisions: readonly PlannedDecision[] }) {
  if (decisions.length === 0) return null;
  return (
    <article
      aria-label="Chosen settings"
      className="shrink-0 rounded-2 border border-line bg-surface p-3"
    >
      <h3 className="text-sm">
        <b>Chosen</b> <span className="text-muted text-xs">where the loop leaves it open</span>
      </h3>
      <dl className="mt-1.5 text-xs">
        {decisions.map((decision) => (
          <div
            key={decision.path}
            className="flex flex-wrap items-baseline gap-x-3 border-line border-t py-1"
          >
            <dt className="w-64 max-w-full break-words">
              <Setting path={decision.path} />
            </dt>
            <dd className="w-28 max-w-full break-words font-medium">{valueText(decision.value)}</dd>
            <dd className="min-w-0 flex-[1_1_18rem] text-muted">{decision.reason}</dd>
          </div>
        ))}
      </dl>
    </article>
  );
}

function Setting({ path }: { path: string }) {
  const place = fieldOf(path);
  if (place === null) return <>{path}</>;
  return (
    <button
      type="button"
      className="text-left hover:underline"
      onClick={() => {
        showField(place.node, place.field);
      }}
    >
      {place.node} {place.field}
    </button>
  );
}

/** The node's field that a path of the loop names: `nodes.actor.training.dtype`; null for others. */
function fieldOf(path: string): { node: string; field: string } | null {
  const [, node, field] = /^nodes\.([^.]+)\.(.+)$/.exec(path) ?? [];
  return node && field ? { node, field } : null;
}

function valueText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}
