import type { PlannedDecision } from "@/api/types";
import { useSelection } from "@/session/selection";

/** What was chosen where the loop left it open, each with its reason; a press shows the field. */
export function Choices({ decisions }: { decisions: readonly PlannedDecision[] }) {
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
        useSelection.getState().select({ nodes: [place.node] });
        useSelection.getState().focusField(place.node, place.field);
      }}
    >
      {place.node} {place.field}
    </button>
  );
}

/** The node's field that a path of the loop names: `nodes.actor.training.dtype`; null for others. */
export function fieldOf(path: string): { node: string; field: string } | null {
  const [, node, field] = /^nodes\.([^.]+)\.(.+)$/.exec(path) ?? [];
  return node && field ? { node, field } : null;
}

/** A chosen value as the YAML has it. */
export function valueText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}
