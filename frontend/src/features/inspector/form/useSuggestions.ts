import { useMemo } from "react";
import type { Field } from "@/catalog/schema";
import { hasSuggestions, type Suggestion, suggestionsOf } from "@/document/suggestions";
import { useCatalog, useDocument } from "@/state/document/context";
import { useForm } from "./FormContext";

const NONE: readonly Suggestion[] = [];

export function useSuggestions(field: Pick<Field, "choosesFrom">): readonly Suggestion[] {
  const catalog = useCatalog();
  const { choosesFrom } = field;
  const document = useDocument((state) =>
    hasSuggestions({ choosesFrom }) ? state.document : null,
  );
  const { scope } = useForm();
  const id = scope[0] === "nodes" ? String(scope[1]) : "";
  return useMemo(
    () =>
      document
        ? suggestionsOf(catalog, document, { choosesFrom }, document.nodes[id] ?? null)
        : NONE,
    [catalog, document, choosesFrom, id],
  );
}
