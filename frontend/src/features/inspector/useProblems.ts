import { indexProblems, type ProblemIndex } from "@/document/problems";
import { useWhenStill } from "@/state/choosing";
import { useSync } from "@/state/document/context";

/** The loop's problems for its forms: what the check finds moves no field under a pointer. */
export function useProblems(): ProblemIndex {
  return useWhenStill(useSync((state) => indexProblems(state.check?.report.diagnostics)));
}
