/** The forms of nodes, edges and other parts of the loop; what is written in a run is also noted to be sent to it. */
import { useMemo } from "react";
import type { Catalog, Diagnostic, Json, JsonObject } from "@/api/types";
import { following } from "@/catalog/following";
import { NOTHING_HIDDEN } from "@/catalog/modes";
import type { Field } from "@/catalog/schema";
import { likeNeighbours } from "@/document/alike";
import { defaultAt } from "@/document/fieldAt";
import { readDocumentPath } from "@/document/place";
import { indexProblems, type ProblemIndex } from "@/document/problems";
import type { LoopDocument } from "@/document/types";
import { joinPath, type Path, setPath } from "@/lib/paths";
import { useLive } from "@/live/hooks";
import { isFinal } from "@/live/reducer";
import { useWhenStill } from "@/state/choosing";
import { setEdgeOption } from "@/state/commands/edges";
import { setField, setFields, setValue } from "@/state/commands/fields";
import { type OpenLoop, useDocument, useOpenLoop, useSync } from "@/state/document/context";
import type { StoreDispatchOptions } from "@/state/document/store";
import { usePreferences } from "@/state/preferences";
import { useRunEdits } from "@/state/runEdits";
import { useLaid } from "@/state/useVisits";
import type { FormSettings } from "./form/FormContext";

const NONE: readonly never[] = [];

/** The loop's problems for its forms: what the check finds moves no field under a pointer. */
export function useProblems(): ProblemIndex {
  return useWhenStill(useSync((state) => indexProblems(state.check?.report.diagnostics)));
}

interface Change {
  path: Path;
  value: Json | undefined;
  keep: number;
}

interface FormOf {
  base: Path;
  scope: Path;
  diagnostics: readonly Diagnostic[];
  hidden?: FormSettings["hidden"];
  put: (change: Change, options: StoreDispatchOptions) => void;
}

function useFormOf({ base, scope, diagnostics, hidden, put }: FormOf): FormSettings {
  const { catalog, store, runId } = useOpenLoop();
  const level = usePreferences((state) => state.level);
  const locks = useLocks();
  return {
    level,
    levels: catalog.levels,
    base,
    scope,
    diagnostics,
    hidden: hidden ?? NOTHING_HIDDEN,
    keepsWrong: runId === null,
    ...locks,
    write: (path, value, keep = 0) => {
      const full = joinPath([...scope, ...path]);
      put({ path, value, keep }, { group: full, isHotEdit: runId !== null });
      if (runId) noteEdit({ catalog, store }, full, value);
    },
  };
}

/** The form of any part of the loop that is no node or edge: schedule, hardware, run, a phase. */
export function useValueForm(base: Path): FormSettings {
  const { store } = useOpenLoop();
  const diagnostics = useProblems().loop;
  // An entry of a list is removed by its own button, not with its last field.
  const ownKeys = typeof base.at(-1) === "number" ? base.length : 0;
  return useFormOf({
    base,
    scope: base,
    diagnostics,
    put: ({ path, value, keep }, options) => {
      const kept = keep > 0 ? base.length + keep : ownKeys;
      store.dispatch(setValue, { path: [...base, ...path], value, keep: kept }, options);
    },
  });
}

export function useNodeForm(node: string, hidden: FormSettings["hidden"]): FormSettings {
  const { catalog, store } = useOpenLoop();
  const laidOf = useLaid();
  const diagnostics = useProblems().byNode.get(node) ?? NONE;
  return useFormOf({
    base: [],
    scope: ["nodes", node],
    diagnostics,
    hidden,
    put: (change, options) => {
      const before = store.getState().document.nodes[node];
      const kind = before && catalog.kinds[before.kind];
      if (!kind) return;
      const after = structuredClone(before);
      setPath(after, change.path, change.value, change.keep);
      const also = following(kind, before, after, laidOf(node));
      const taken = withNeighbours(catalog, store.getState().document, node, before, also);
      store.dispatch(setField, { node, ...change, also: taken }, options);
    },
  });
}

/** Settings that a change brings, with the values of the node's neighbours where it had none of its own. */
function withNeighbours(
  catalog: Catalog,
  document: LoopDocument,
  node: string,
  before: JsonObject,
  also: Record<string, Json | undefined>,
): Record<string, Json | undefined> {
  const brought = Object.entries(also).filter(
    ([name, value]) => value !== undefined && before[name] === undefined,
  );
  if (brought.length === 0) return also;
  const like = likeNeighbours(catalog, document, Object.fromEntries(brought) as JsonObject, node);
  return { ...also, ...like };
}

/** Diagnostics count edges; paths of edits may use their ids. */
export function useEdgeForm(key: string, index: number, id: Json | undefined): FormSettings {
  const { store } = useOpenLoop();
  const diagnostics = useProblems().loop;
  return useFormOf({
    base: ["edges", index],
    scope: ["edges", typeof id === "string" ? id : index],
    diagnostics,
    put: (change, options) => store.dispatch(setEdgeOption, { key, ...change }, options),
  });
}

/** The form of several nodes of one kind: what is set is set in all of them, as one undo step. */
export function useNodesForm(
  nodes: readonly string[],
  hidden: FormSettings["hidden"],
  label: string,
): FormSettings {
  const { store } = useOpenLoop();
  const form = useFormOf({
    base: [],
    scope: ["nodes", nodes[0] ?? ""],
    diagnostics: NONE,
    hidden,
    put: (change) => {
      const group = `many ${nodes.join(" ")} ${joinPath(change.path)}`;
      store.dispatch(setFields, { nodes, ...change }, { label, group });
    },
  });
  return { ...form, keepsWrong: false };
}

/** A change to send to a run. The run is told values: a field that is put back is told its default. */
function noteEdit(
  { catalog, store }: Pick<OpenLoop, "catalog" | "store">,
  path: string,
  value: Json | undefined,
): void {
  const { document } = store.getState();
  const told =
    value === undefined ? defaultAt(catalog, document, readDocumentPath(document, path)) : value;
  if (told !== undefined) useRunEdits.getState().set(path, told);
}

/** In a run only hot fields may change, and only while it goes on. */
function useLocks() {
  const { runId } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const isOver = useLive("status", (live) => isFinal(live.run?.state ?? live.state.state), false);
  return useMemo(() => {
    if (runId !== null) {
      return {
        isLocked: (field: Field) => isOver || !field.isHot,
        lockReason: isOver
          ? "The run is over. Open its loop to change it."
          : "Only fields marked with a flame can be changed during a run.",
      };
    }
    return {
      isLocked: () => isReadonly,
      lockReason: isReadonly ? "The YAML is invalid. Fix or discard it first." : null,
    };
  }, [runId, isReadonly, isOver]);
}
