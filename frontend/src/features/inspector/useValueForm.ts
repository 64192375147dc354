import { useMemo } from "react";
import { joinPath, type Path } from "@/lib/paths";
import { setValue } from "@/state/commands/fields";
import { useOpenLoop } from "@/state/document/context";
import { usePreferences } from "@/state/preferences";
import { type FormSettings, NOTHING_HIDDEN } from "./form/FormContext";
import { noteEdit } from "./noteEdit";
import { useLocks } from "./useLocks";
import { useProblems } from "./useProblems";

export function useValueForm(base: Path): FormSettings {
  const { catalog, store, runId } = useOpenLoop();
  const level = usePreferences((state) => state.level);
  const diagnostics = useProblems().loop;
  const locks = useLocks();
  const key = joinPath(base);
  return useMemo(() => {
    const at =
      key === "" ? [] : key.split(".").map((part) => (/^\d+$/.test(part) ? Number(part) : part));
    // An entry of a list is removed by its own button, not with its last field.
    const ownKeys = typeof at.at(-1) === "number" ? at.length : 0;
    return {
      level,
      levels: catalog.levels,
      base: at,
      scope: at,
      diagnostics,
      hidden: NOTHING_HIDDEN,
      keepsWrong: runId === null,
      ...locks,
      write: (path, value, keep = 0) => {
        const full = [...at, ...path];
        store.dispatch(
          setValue,
          { path: full, value, keep: keep > 0 ? at.length + keep : ownKeys },
          { group: joinPath(full), isHotEdit: runId !== null },
        );
        if (runId) noteEdit({ catalog, store }, joinPath(full), value);
      },
    };
  }, [catalog, store, runId, level, diagnostics, locks, key]);
}
