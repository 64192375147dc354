import type { Diagnostic } from "@/api/types";
import { toneOf } from "@/document/problems";
import { useCatalog } from "@/state/document/context";
import { FixButtons } from "@/ui/FixButtons";
import { RichText } from "@/ui/RichText";
import { SeverityIcon } from "@/ui/SeverityIcon";
import { WhyButton } from "@/ui/WhyButton";

export function FieldProblems({ problems }: { problems: readonly Diagnostic[] }) {
  const catalog = useCatalog();
  if (problems.length === 0) return null;
  return (
    <ul className="mt-1 flex flex-col gap-1">
      {problems.map((problem, index) => (
        <li key={index} className="flex gap-1.5 text-xs">
          <span className="pt-px">
            <SeverityIcon severity={toneOf(catalog, [problem]) ?? problem.severity} size={13} />
          </span>
          <span className="min-w-0">
            <RichText text={problem.message} />
            {problem.hint ? (
              <span className="block text-muted">
                <RichText text={problem.hint} />
              </span>
            ) : null}
            <span className="flex flex-wrap items-center gap-1">
              <WhyButton code={problem.code} />
              <FixButtons problem={problem} />
            </span>
          </span>
        </li>
      ))}
    </ul>
  );
}
