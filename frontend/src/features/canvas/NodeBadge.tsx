import type { Diagnostic } from "@/api/types";
import { indexProblems, splitProblems, type Tone, worstSeverity } from "@/document/problems";
import { formatPlural } from "@/lib/format";
import { useOpenLoop, useSync } from "@/state/document/context";
import { focusField, select } from "@/state/selection";
import { classes } from "@/ui/classes";
import { FixButtons } from "@/ui/FixButtons";
import { RichText } from "@/ui/RichText";
import { SeverityIcon } from "@/ui/SeverityIcon";
import { useDrawnFrom } from "./handles";
import { usePointedAt } from "./usePointedAt";

const NONE: readonly never[] = [];

/**
 * How many problems a node has and the worst one's sign; while it is pointed at, that one in words and what mends it.
 * What is only not there yet is no problem of what was drawn: it is told as the next step.
 */
export function NodeBadge({ node }: { node: string }) {
  const { catalog } = useOpenLoop();
  const problems = useSync(
    (state) => indexProblems(state.check?.report.diagnostics).byNode.get(node) ?? NONE,
  );
  const { isPointedAt, pointing } = usePointedAt();
  const isDrawing = useDrawnFrom() !== null;
  const { faults, steps } = splitProblems(catalog, problems);
  const worst = worstSeverity(faults);
  const first = faults.find(({ severity }) => severity === worst) ?? steps[0];
  if (!first) return null;
  const tone = worst ?? "next step";
  const open = (event: React.MouseEvent) => {
    event.stopPropagation();
    select({ nodes: [node] });
    focusField(node, first.field ?? null);
  };
  return (
    <div className="nodrag nopan" {...pointing}>
      <button
        type="button"
        className="node-badge nodrag"
        tabIndex={-1}
        data-severity={tone}
        aria-label={
          worst ? `${formatPlural(faults.length, "problem")} of ${node}` : `Next step of ${node}`
        }
        onClick={open}
      >
        <SeverityIcon severity={tone} size={13} />
        {faults.length > 1 ? faults.length : null}
      </button>
      {isPointedAt && !isDrawing ? (
        <CardProblem problem={first} tone={tone} more={problems.length - 1} />
      ) : null}
    </div>
  );
}

interface CardProblemProps {
  problem: Diagnostic;
  tone: Tone;
  more: number;
}

export function CardProblem({ problem, tone, more }: CardProblemProps) {
  return (
    <div
      className={classes(
        "card-problem absolute right-[-7px] bottom-[calc(100%+8px*var(--unzoom))] z-3 flex w-[max(100%,224px)] origin-bottom-right scale-(--unzoom) gap-1.5 rounded-2 border border-line px-2 py-1.5 text-text shadow-2 compact:right-0 compact:w-56",
        tone === "next step" ? "bg-surface" : "bg-info-soft",
      )}
      data-severity={tone}
    >
      <SeverityIcon severity={tone} size={13} />
      <div className="min-w-0 flex-1">
        <p className="line-clamp-3">
          <RichText text={problem.message} />
        </p>
        <FixButtons problem={problem} />
        {more > 0 ? <p className="text-muted">and {more} more</p> : null}
      </div>
    </div>
  );
}
