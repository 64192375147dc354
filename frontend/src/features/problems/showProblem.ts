import type { Diagnostic } from "@/api/types";
import { edgeKeys } from "@/document/edges";
import { readPhasePath } from "@/document/phases";
import { findPlace, readDocumentPath } from "@/document/place";
import type { LoopDocument } from "@/document/types";
import { usePreferences } from "@/session/preferences";
import { useSelection } from "@/session/selection";

/** Selects what a problem is about and asks the inspector to show the field. */
export function showProblem(problem: Diagnostic, document: LoopDocument): void {
  const { select, focusField } = useSelection.getState();
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
  usePreferences.getState().set({ isInspectorOpen: true });
  focusField(problem.node ?? null, field);
}
