import { Check, CircleHelp, TriangleAlert } from "lucide-react";
import { Link } from "wouter";
import { type Answer, answersOf, type Experiment, type Tone } from "./answers";

const MARKS: Record<Tone, { icon: typeof Check; look: string; label: string }> = {
  good: { icon: Check, look: "text-success", label: "good" },
  bad: { icon: TriangleAlert, look: "text-warning", label: "needs a look" },
  open: { icon: CircleHelp, look: "text-muted", label: "not known yet" },
};

/** The ten questions that a run answers, in one list. */
export function Answers({ found }: { found: Experiment }) {
  return (
    <dl aria-label="What came of the run" className="text-sm">
      {answersOf(found).map((answer) => (
        <Row key={answer.question} {...answer} />
      ))}
    </dl>
  );
}

function Row({ question, text, tone, more }: Answer) {
  const mark = tone ? MARKS[tone] : null;
  return (
    <div className="grid grid-cols-[8.5rem_minmax(0,1fr)] gap-3 border-line border-b py-1.5 last:border-b-0">
      <dt className="text-muted">{question}</dt>
      <dd className="wrap-anywhere tabular">
        {mark ? (
          <mark.icon
            size={14}
            role="img"
            aria-label={mark.label}
            className={`mr-1 inline-block align-[-2px] ${mark.look}`}
          />
        ) : null}
        {text}
        {more ? (
          <>
            {" "}
            <Link href={more.href} className="text-accent-text underline print:hidden">
              {more.label}
            </Link>
          </>
        ) : null}
      </dd>
    </div>
  );
}
