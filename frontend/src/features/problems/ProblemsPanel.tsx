import { CircleCheckBig } from "lucide-react";
import type { Diagnostic } from "@/api/types";
import { edgeKeys } from "@/document/edges";
import { readPhasePath } from "@/document/phases";
import { findPlace, readDocumentPath } from "@/document/place";
import { splitProblems, type Tone } from "@/document/problems";
import type { LoopDocument } from "@/document/types";
import { useOpenLoop, useSync } from "@/state/document/context";
import { setPreferences } from "@/state/preferences";
import { focusField, select } from "@/state/selection";
import { Button } from "@/ui/Button";
import { FixButtons } from "@/ui/FixButtons";
import { RichText } from "@/ui/RichText";
import { SeverityIcon } from "@/ui/SeverityIcon";
import { Empty, Loading } from "@/ui/States";
import { WhyButton } from "@/ui/WhyButton";

const ORDER = ["error", "warning", "hint"];

export function ProblemsPanel() {
  const { catalog, sync } = useOpenLoop();
  const status = useSync((state) => state.checkStatus);
  const check = useSync((state) => state.check);

  if (!check) {
    if (status !== "offline") return <Loading label="Checking the loop" />;
    return (
      <Empty
        title="The loop could not be checked"
        action={<Button onClick={() => sync?.checkAgain()}>Check again</Button>}
      >
        The server is not responding. Your changes are kept in this browser.
      </Empty>
    );
  }
  const { faults, steps } = splitProblems(catalog, check.report.diagnostics);
  if (faults.length + steps.length === 0) {
    return (
      <Empty icon={<CircleCheckBig size={24} className="text-success-mark" />} title="No problems">
        The loop is valid. Sizes, lengths and placement are consistent.
      </Empty>
    );
  }
  return (
    <div className="h-full overflow-y-auto py-1">
      <ul>
        {faults
          .toSorted((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity))
          .map((problem, index) => (
            <ProblemRow key={index} problem={problem} tone={problem.severity} />
          ))}
      </ul>
      {steps.length > 0 ? (
        <section aria-label="Next steps">
          <h3 className="px-4 pt-2 pb-1 font-semibold text-muted text-xs">
            Next steps: what the loop still needs
          </h3>
          <ul>
            {steps.map((problem, index) => (
              <ProblemRow key={index} problem={problem} tone="next step" />
            ))}
          </ul>
        </section>
      ) : null}
    </div>
  );
}

function ProblemRow({ problem, tone }: { problem: Diagnostic; tone: Tone }) {
  const { store } = useOpenLoop();
  return (
    <li className="group flex gap-2 px-4 py-1.5 text-sm hover:bg-hover">
      <span className="pt-0.5">
        <SeverityIcon severity={tone} size={15} />
      </span>
      <div className="min-w-0 flex-1">
        <button
          type="button"
          className="w-full text-left"
          onClick={() => showProblem(problem, store.getState().document)}
        >
          <span>
            <RichText text={problem.message} />
          </span>
          {problem.hint ? (
            <span className="block text-muted text-xs">
              <RichText text={problem.hint} />
            </span>
          ) : null}
        </button>
        <span className="flex flex-wrap items-center gap-1">
          <WhyButton code={problem.code} />
          <FixButtons problem={problem} />
        </span>
      </div>
      <div className="flex shrink-0 flex-col items-end text-faint text-xs">
        <span className="max-w-56 truncate font-mono" title={place(problem)}>
          {place(problem)}
        </span>
        <span title={`Code ${problem.code}`}>{problem.code}</span>
      </div>
    </li>
  );
}

function place(problem: Diagnostic): string {
  const where = [problem.node, problem.field].filter(Boolean).join(".");
  return problem.line ? `${where || "text"}:${problem.line}` : where;
}

function showProblem(problem: Diagnostic, document: LoopDocument): void {
  const field = problem.field ?? null;
  const path = readDocumentPath(document, field ?? "");
  if (problem.node) {
    select({ nodes: [problem.node] });
  } else if (path[0] === "edges") {
    const index = Number(findPlace(document, path).path[1]);
    const key = edgeKeys(document.edges)[index];
    select(key ? { edges: [key] } : {});
  } else {
    const phase = readPhasePath(path);
    const isEntry = path[0] === "schedule" && typeof path[2] === "number";
    if (phase) select({ phase: phase.at });
    else if (isEntry) select({ entry: { list: String(path[1]), index: Number(path[2]) } });
    else select({});
  }
  setPreferences({ isInspectorOpen: true });
  focusField(problem.node ?? null, field);
}
