import { useMemo } from "react";
import type { Json } from "@/api/types";
import { readSchema } from "@/catalog/schema";
import { commonOf } from "@/document/sharedValue";
import { formatPlural } from "@/lib/format";
import { isObject, joinPath } from "@/lib/paths";
import { setFields } from "@/state/commands/fields";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { usePreferences } from "@/state/preferences";
import { FormContext, type FormSettings } from "./form/FormContext";
import { FormLabels } from "./form/Labels";
import { ObjectFields } from "./form/ObjectFields";
import { useLocks } from "./useLocks";
import { useOtherModes } from "./useOtherModes";

const NONE: readonly never[] = [];

/** The fields of several nodes of one kind: what is set here is set in all of them, as one undo step. */
export function ManyFields({ kind, nodes }: { kind: string; nodes: readonly string[] }) {
  const { catalog, store } = useOpenLoop();
  const all = useDocument((state) => state.document.nodes);
  const level = usePreferences((state) => state.level);
  const { hidden } = useOtherModes(nodes[0] ?? "");
  const locks = useLocks();
  const info = catalog.kinds[kind];
  const field = info ? readSchema(info.schema) : null;
  const { value, differing } = useMemo(
    () =>
      commonOf(
        field,
        nodes.map((id) => all[id]),
      ),
    [field, nodes, all],
  );
  const form = useMemo(
    (): FormSettings => ({
      level,
      levels: catalog.levels,
      base: [],
      scope: ["nodes", nodes[0] ?? ""],
      diagnostics: NONE,
      hidden,
      keepsWrong: false,
      ...locks,
      differing: new Map([...differing].map(([path, values]) => [path, wordsOf(values)])),
      write: (path, to, keep = 0) =>
        store.getState().dispatch(
          setFields,
          { nodes, path, value: to, keep },
          {
            label: `Change ${formatPlural(nodes.length, "node")}`,
            group: `many ${nodes.join(" ")} ${joinPath(path)}`,
          },
        ),
    }),
    [catalog, store, level, hidden, locks, differing, nodes],
  );
  if (field?.shape !== "object") return null;
  return (
    <FormContext value={form}>
      <FormLabels form={field}>
        <ObjectFields
          field={field}
          path={[]}
          value={isObject(value) ? value : {}}
          without={["kind"]}
        />
      </FormLabels>
    </FormContext>
  );
}

/** "8, 16, not set", each once. */
function wordsOf(values: readonly (Json | undefined)[]): string {
  const words = values.map((value) => {
    if (value === undefined) return "not set";
    if (!isObject(value)) return typeof value === "string" ? value : JSON.stringify(value);
    return Object.values(value).find((one) => typeof one === "string") ?? "set";
  });
  return [...new Set(words)].join(", ");
}
