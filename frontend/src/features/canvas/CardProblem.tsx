import type { Diagnostic } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { FixButtons } from "@/ui/FixButtons";
import { RichText } from "@/ui/RichText";
import { SeverityIcon } from "@/ui/SeverityIcon";

/** The worst problem of a card in words, at the card, with what mends it. */
export function CardProblem({ problems }: { problems: readonly Diagnostic[] }) {
  const worst =
    problems.find(({ severity }) => severity === "error") ??
    problems.find(({ severity }) => severity === "warning");
  if (!worst) return null;
  const more = problems.length - 1;
  return (
    <div className="card-problem" data-severity={worst.severity}>
      <SeverityIcon severity={worst.severity} size={13} />
      <div className="min-w-0 flex-1">
        <p className="line-clamp-3">
          <RichText text={worst.message} />
        </p>
        <span className="nodrag nopan">
          <FixButtons problem={worst} />
        </span>
        {more > 0 ? <p className="text-muted">and {formatPlural(more, "more problem")}</p> : null}
      </div>
    </div>
  );
}
