import type { Diagnostic, Severity } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { FixButtons } from "@/ui/FixButtons";
import { RichText } from "@/ui/RichText";
import { SeverityIcon } from "@/ui/SeverityIcon";

interface CardProblemProps {
  problems: readonly Diagnostic[];
  worst: Severity;
}

/** The worst problem of a card in words, at the card, with what mends it. */
export function CardProblem({ problems, worst: severity }: CardProblemProps) {
  const worst = problems.find((problem) => problem.severity === severity);
  if (!worst) return null;
  const more = problems.length - 1;
  return (
    <div className="card-problem" data-severity={worst.severity}>
      <SeverityIcon severity={worst.severity} size={13} />
      <div className="min-w-0 flex-1">
        <p className="line-clamp-3">
          <RichText text={worst.message} />
        </p>
        <FixButtons problem={worst} />
        {more > 0 ? <p className="text-muted">and {formatPlural(more, "more problem")}</p> : null}
      </div>
    </div>
  );
}
