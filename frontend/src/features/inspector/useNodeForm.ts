import { useMemo } from "react";
import { setField } from "@/document/commands/setField";
import { useOpenLoop } from "@/document/context";
import { joinPath } from "@/lib/paths";
import { usePreferences } from "@/session/preferences";
import type { FormSettings } from "./form/FormContext";
import { noteEdit } from "./noteEdit";
import { useLocks } from "./useLocks";
import { useProblems } from "./useProblems";

const NONE: readonly never[] = [];

/** The form of one node: writes its fields, and in a run collects edits of hot ones. */
export function useNodeForm(node: string, hidden: FormSettings["hidden"]): FormSettings {
  const { catalog, store, runId } = useOpenLoop();
  const level = usePreferences((state) => state.level);
  const diagnostics = useProblems().byNode.get(node) ?? NONE;
  const locks = useLocks();
  return useMemo(
    () => ({
      level,
      levels: catalog.levels,
      base: [],
      scope: ["nodes", node],
      diagnostics,
      hidden,
      keepsWrong: runId === null,
      ...locks,
      write: (path, value, keep = 0) => {
        const full = joinPath(["nodes", node, ...path]);
        store
          .getState()
          .dispatch(
            setField,
            { node, path, value, keep },
            { group: full, isHotEdit: runId !== null },
          );
        if (runId) noteEdit({ catalog, store }, full, value);
      },
    }),
    [catalog, store, runId, level, diagnostics, hidden, locks, node],
  );
}
