import { ChevronRight, Route } from "lucide-react";
import type { ReactNode } from "react";
import type { PlannedDecision, PlannedStage } from "@/api/types";
import { useNodeColor, useSync } from "@/state/document/context";
import { showField } from "@/state/selection";
import { classes } from "@/ui/classes";
import { Empty, Loading } from "@/ui/States";
import { Tooltip } from "@/ui/Tooltip";

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
      {plan.phases.map(({ index, name, ends, rounds, rows, updates }) => (
        <Card key={index} label={`Phase ${name}`}>
          <h3 className="flex flex-wrap items-baseline gap-x-3 text-sm">
            <b>{name}</b>
            <span className="text-muted text-xs">
              {ends}
              {rounds > 1 ? `, ${rounds} times` : ""}
            </span>
          </h3>
          <StageChain stages={rows} />
          {updates.map((update) => (
            <p key={update} className="mt-1.5 text-muted text-xs">
              {update}
            </p>
          ))}
        </Card>
      ))}
      {plan.probes.map(({ node, text, rows }) => (
        <Card key={node} label={`Evaluation ${node}`} isDashed>
          <h3 className="text-xs">{text}</h3>
          <StageChain stages={rows} />
        </Card>
      ))}
      <Choices decisions={plan.decisions} />
    </section>
  );
}

interface CardProps {
  label: string;
  isDashed?: boolean;
  children: ReactNode;
}

function Card({ label, isDashed = false, children }: CardProps) {
  return (
    <article
      aria-label={label}
      className={classes(
        "shrink-0 rounded-2 border border-line bg-surface p-3",
        isDashed && "border-dashed",
      )}
    >
      {children}
    </article>
  );
}

function Choices({ decisions }: { decisions: readonly PlannedDecision[] }) {
  if (decisions.length === 0) return null;
  return (
    <Card label="Chosen settings">
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
    </Card>
  );
}

/** A path such as `nodes.actor.training.dtype` leads to the field. */
function Setting({ path }: { path: string }) {
  const [, node, field] = /^nodes\.([^.]+)\.(.+)$/.exec(path) ?? [];
  if (!node || !field) return <>{path}</>;
  return (
    <button
      type="button"
      className="text-left hover:underline"
      onClick={() => showField(node, field)}
    >
      {node} {field}
    </button>
  );
}

function valueText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

function StageChain({ stages }: { stages: readonly PlannedStage[] }) {
  if (stages.length === 0) return null;
  return (
    <ol className="mt-2 flex flex-wrap items-center gap-y-1.5">
      {stages.map((stage, index) => (
        <li key={stage.stage} className="flex min-w-0 items-center">
          <StageChip stage={stage} />
          {index < stages.length - 1 ? (
            <ChevronRight size={14} className="shrink-0 text-faint" aria-hidden="true" />
          ) : null}
        </li>
      ))}
    </ol>
  );
}

function StageChip({ stage }: { stage: PlannedStage }) {
  const color = useNodeColor(stage.node);
  return (
    <Tooltip text={rowsText(stage)}>
      <button
        type="button"
        className="flex h-6 min-w-0 items-center gap-1.5 rounded-1 border border-line bg-sunken px-2 text-xs hover:bg-hover"
        onClick={() => void showField(stage.node, null)}
      >
        <span
          className="size-2 shrink-0 rounded-full"
          style={{ background: color }}
          aria-hidden="true"
        />
        <span className="truncate">{stage.stage}</span>
        {stage.rows === null ? null : (
          <span className="tabular whitespace-nowrap font-medium">
            {stage.rows}
            {stage.passes > 1 ? " a pass" : ""}
          </span>
        )}
      </button>
    </Tooltip>
  );
}

export function rowsText(stage: PlannedStage): string {
  if (stage.rows === null) return `${stage.stage} works on no rows`;
  const breakdown = stage.breakdown ? `: ${stage.breakdown}` : "";
  const passes = stage.passes > 1 ? `; at most ${stage.passes} passes a step` : "";
  return `${stage.rows} rows a step${breakdown}${passes}`;
}
