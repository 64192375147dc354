import { lazy, Suspense } from "react";
import { useSync } from "@/document/context";
import { indexProblems, worstSeverity } from "@/document/problems";
import { formatPlural } from "@/lib/format";
import { useSelection } from "@/session/selection";
import { SeverityIcon } from "@/ui/SeverityIcon";
import { useDrawnFrom } from "./handles";
import { usePointedAt } from "./usePointedAt";

const NONE: readonly never[] = [];

// Most cards have none.
const CardProblem = lazy(() =>
  import("./CardProblem").then((module) => ({ default: module.CardProblem })),
);

/** How many problems a node has and the worst one's sign; while it is pointed at, that one in words and what mends it. */
export function NodeBadge({ node }: { node: string }) {
  const problems = useSync(
    (state) => indexProblems(state.check?.report.diagnostics).byNode.get(node) ?? NONE,
  );
  const focusField = useSelection((state) => state.focusField);
  const { isPointedAt, pointing } = usePointedAt();
  const isDrawing = useDrawnFrom() !== null;
  const worst = worstSeverity(problems);
  const [first] = problems;
  if (!worst || !first) return null;
  const open = (event: React.MouseEvent) => {
    event.stopPropagation();
    useSelection.getState().select({ nodes: [node] });
    focusField(node, first.field ?? null);
  };
  return (
    <div className="nodrag nopan" {...pointing}>
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
      {isPointedAt && !isDrawing ? (
        <Suspense>
          <CardProblem problems={problems} worst={worst} />
        </Suspense>
      ) : null}
    </div>
  );
}
