import { useQuery } from "@tanstack/react-query";
import { produce } from "immer";
import { explainNumbers } from "@/api/routes";
import { toSpec } from "@/document/convert";
import { useBudget } from "@/features/hardware/useBudget";
import { applyFit } from "@/state/commands/applyChanges";
import { useDocument, useOpenLoop } from "@/state/document/context";

/** The formulas behind the estimate; of a budget that is tried, those of the loop with what it changes. */
export function useTerms(isTried: boolean) {
  const { catalog } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const { answer, isTrying, isSettled } = useBudget();
  const edits = isTried && isTrying && isSettled && answer ? answer.edits : null;
  return useQuery({
    queryKey: ["terms", document, edits],
    queryFn: ({ signal }) => {
      const shown = edits
        ? produce(document, (draft) => applyFit.recipe(draft, { catalog, edits }))
        : document;
      return explainNumbers({ spec: toSpec(shown) }, signal);
    },
    gcTime: 60_000,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
    structuralSharing: false,
  });
}
