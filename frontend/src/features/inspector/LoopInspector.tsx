import { useDocument } from "@/document/context";
import { FieldProblems } from "./form/FieldProblems";
import { InspectorHeader } from "./InspectorHeader";
import { LoopFacts } from "./LoopFacts";
import { LoopSection } from "./LoopSection";
import { useProblems } from "./useProblems";

const SCHEDULE_LISTS = ["phases", "triggers", "anneal"];

/** The loop as a whole: what it is called, where and when it runs. */
export function LoopInspector() {
  const name = useDocument((state) => state.document.name);
  const problems = useProblems().loop;
  return (
    <>
      <InspectorHeader
        title={
          <h2 className="truncate font-semibold text-sm" title={name}>
            {name}
          </h2>
        }
        subtitle="Loop"
      />
      <div className="min-h-0 flex-1 overflow-y-auto px-4 py-2">
        <FieldProblems problems={problems.filter((problem) => !problem.field)} />
        <LoopFacts />
        <LoopSection title="Schedule" part="schedule" without={SCHEDULE_LISTS} />
        <LoopSection title="Hardware" part="hardware" />
        <LoopSection title="Run" part="run" />
      </div>
    </>
  );
}
