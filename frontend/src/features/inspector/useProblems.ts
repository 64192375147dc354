import { useEffect, useState } from "react";
import { useSync } from "@/document/context";
import { indexProblems, type ProblemIndex } from "@/document/problems";
import { whenStill } from "@/session/choosing";

/** The loop's problems for its forms: what the check finds moves no field under a pointer. */
export function useProblems(): ProblemIndex {
  const found = useSync((state) => indexProblems(state.check?.report.diagnostics));
  const [shown, setShown] = useState(found);
  useEffect(() => whenStill(() => setShown(found)), [found]);
  return shown;
}
