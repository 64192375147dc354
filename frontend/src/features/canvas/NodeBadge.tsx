import type { Diagnostic } from "@/api/types";
import {
  indexProblems,
  splitProblems,
  type Tone,
  toneOf,
  worstSeverity,
} from "@/document/problems";
import { formatPlural } from "@/lib/format";
import { useOpenLoop, useSync } from "@/state/document/context";
import { focusField, select } from "@/state/selection";
import { FixButtons } from "@/ui/FixButtons";
import { RichText } from "@/ui/RichText";
import { SeverityIcon } from "@/ui/SeverityIcon";
import { useDrawnFrom } from "./handles";
import { usePointedAt } from "./usePointedAt";

const NONE: readonly never[] = [];

/** A badge at a card's upper corner. */
export const BADGE =
  "absolute -top-[9px] -right-[7px] z-1 inline-flex h-5.5 items-center gap-[3px] rounded-[11px] px-[5px] font-semibold compact:top-[calc(-8px*var(--unzoom))] compact:right-[calc(-7px*var(--unzoom))] compact:h-4.5 compact:origin-top-right compact:scale-(--unzoom) compact:px-[3px]";

/** A badge, and the problem in words, by how bad it is. */
export const TONES: Record<Tone, { badge: string; problem: string }> = {
  error: {
    badge: "bg-error-soft text-error shadow-[0_0_0_2px_var(--canvas)]",
    problem: "border-[color-mix(in_oklab,var(--error)_40%,var(--line))] bg-error-soft",
  },
  warning: {
    badge: "bg-warning-soft text-warning shadow-[0_0_0_2px_var(--canvas)]",
    problem: "border-[color-mix(in_oklab,var(--warning-mark)_40%,var(--line))] bg-warning-soft",
  },
  hint: {
    badge: "bg-info-soft text-info shadow-[0_0_0_2px_var(--canvas)]",
    problem: "border-line bg-info-soft",
  },
  "next step": {
    badge: "bg-surface text-muted shadow-[0_0_0_1px_var(--line)]",
    problem: "border-line bg-surface",
  },
};

/**
 * How many problems a node has and the worst one's sign; while it is pointed at, all of them in words and what mends them.
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
  const rest = [...faults, ...steps].filter((problem) => problem !== first);
  const open = (event: React.MouseEvent) => {
    event.stopPropagation();
    select({ nodes: [node] });
    focusField(node, first.field ?? null);
  };
  return (
    <div className="nodrag nopan" {...pointing}>
      <button
        type="button"
        className={`nodrag ${BADGE} ${TONES[tone].badge}`}
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
      {isPointedAt && !isDrawing ? <CardProblems problems={[first, ...rest]} tone={tone} /> : null}
    </div>
  );
}

const MAX_LISTED = 5;

interface CardProblemsProps {
  problems: readonly Diagnostic[];
  tone: Tone;
}

/** All that a node lacks, the worst first, each with what mends it. */
export function CardProblems({ problems, tone }: CardProblemsProps) {
  const { catalog } = useOpenLoop();
  const more = problems.length - MAX_LISTED;
  return (
    <div
      className={`card-problem absolute right-[-7px] bottom-[calc(100%+8px*var(--unzoom))] z-3 w-[max(100%,256px)] origin-bottom-right scale-(--unzoom) rounded-2 border px-2 py-1.5 text-text shadow-2 compact:right-0 compact:w-64 ${TONES[tone].problem}`}
    >
      <ul className="flex flex-col gap-1.5">
        {problems.slice(0, MAX_LISTED).map((problem, place) => (
          <li key={`${problem.code} ${problem.field} ${place}`} className="flex gap-1.5">
            <SeverityIcon severity={toneOf(catalog, [problem]) ?? tone} size={13} />
            <div className="min-w-0 flex-1">
              <p className={problems.length > 1 ? "line-clamp-2" : "line-clamp-3"}>
                <RichText text={problem.message} />
              </p>
              <FixButtons problem={problem} />
            </div>
          </li>
        ))}
      </ul>
      {more > 0 ? <p className="pt-1 text-muted">and {more} more</p> : null}
    </div>
  );
}
