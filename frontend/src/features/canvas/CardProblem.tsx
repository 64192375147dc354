import type { Diagnostic } from "@/api/types";
import type { Tone } from "@/document/problems";
import { FixButtons } from "@/ui/FixButtons";
import { RichText } from "@/ui/RichText";
import { SeverityIcon } from "@/ui/SeverityIcon";

interface CardProblemProps {
  /** What is told first, and how. */
  problem: Diagnostic;
  tone: Tone;
  /** So many more are listed. */
  more: number;
}

/** The worst problem of a card in words, at the card, with what mends it; or what comes next. */
export function CardProblem({ problem, tone, more }: CardProblemProps) {
  return (
    <div className="card-problem" data-severity={tone}>
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
