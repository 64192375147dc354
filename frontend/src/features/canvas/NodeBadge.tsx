import { lazy, Suspense } from "react";
import { useSync } from "@/document/context";
import { indexProblems, worstSeverity } from "@/document/problems";
import { formatPlural } from "@/lib/format";
import { useSelection } from "@/session/selection";
import { RichText } from "@/ui/RichText";
import { SeverityIcon } from "@/ui/SeverityIcon";
import { Tooltip } from "@/ui/Tooltip";
import { useDrawnFrom } from "./handles";

const NONE: readonly never[] = [];

// Most cards have none.
const CardProblem = lazy(() =>
  import("./CardProblem").then((module) => ({ default: module.CardProblem })),
);

/** How many problems a node has, the worst one's sign, and their messages on hover; of a selected one the worst is said. */
export function NodeBadge({ node, isSelected }: { node: string; isSelected: boolean }) {
  const problems = useSync(
    (state) => indexProblems(state.check?.report.diagnostics).byNode.get(node) ?? NONE,
  );
  const focusField = useSelection((state) => state.focusField);
  const isDrawing = useDrawnFrom() !== null;
  const worst = worstSeverity(problems);
  const [first] = problems;
  if (!worst || !first) return null;
  const open = (event: React.MouseEvent) => {
    event.stopPropagation();
    useSelection.getState().select({ nodes: [node] });
    focusField(node, first.field ?? null);
  };
  const badge = (
    <Tooltip
      side="top"
      text={
        <ul className="flex flex-col gap-1">
          {problems.slice(0, 4).map((problem, index) => (
            <li key={index} className="flex gap-1.5">
              <SeverityIcon severity={problem.severity} size={13} />
              <span>
                <RichText text={problem.message} />
              </span>
            </li>
          ))}
          {problems.length > 4 ? (
            <li className="text-faint">and {problems.length - 4} more</li>
          ) : null}
        </ul>
      }
    >
      <button
        type="button"
        className="node-badge nodrag"
        // The problems are listed in their panel; the graph is one stop of the Tab key.
        tabIndex={-1}
        data-severity={worst}
        aria-label={`${formatPlural(problems.length, "problem")} of ${node}`}
        onClick={open}
      >
        <SeverityIcon severity={worst} size={13} />
        {problems.length > 1 ? problems.length : null}
      </button>
    </Tooltip>
  );
  if (!isSelected || isDrawing) return badge;
  return (
    <>
      {badge}
      <Suspense>
        <CardProblem problems={problems} />
      </Suspense>
    </>
  );
}
