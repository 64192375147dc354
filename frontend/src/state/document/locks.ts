/**
 * Settings that fitting into memory leaves as they are. They are kept in the loop's layout, so that they are
 * saved, undone and given to others with it, and are no part of what the loop means.
 */
import type { Draft } from "immer";
import type { Catalog, Json } from "@/api/types";
import { type Field, readSchema } from "@/catalog/schema";
import { isAllRead } from "@/document/place";
import type { LoopDocument } from "@/document/types";
import { defineCommand } from "./command";
import { useCatalog, useDocument } from "./context";

const KEY = "$locks";
const NONE: readonly string[] = [];

export function locksOf(document: LoopDocument): readonly string[] {
  const found = document.unread?.layout?.[KEY];
  return Array.isArray(found) ? (found as Json[] as string[]) : NONE;
}

export function useLocks(): readonly string[] {
  return useDocument((state) => locksOf(state.document));
}

export function useIsLocked(path: string): boolean {
  return useDocument((state) => locksOf(state.document).includes(path));
}

/** Whether fitting may set a field of a node at all: only there a lock means something. */
export function useIsSolvable(node: string, field: string): boolean {
  const catalog = useCatalog();
  const kind = useDocument((state) => state.document.nodes[node]?.kind);
  return kind !== undefined && isSolvable(catalog, kind, field);
}

export function isSolvable(catalog: Catalog, kind: string, field: string): boolean {
  const schema = catalog.kinds[kind]?.schema;
  let part: Field | undefined = schema && readSchema(schema);
  for (const name of field.split(".")) {
    if (part?.shape !== "object") return false;
    part = part.properties().find((property) => property.name === name)?.field;
  }
  return part?.isSolvable ?? false;
}

interface SetLock {
  path: string;
  isLocked: boolean;
}

export const setLock = defineCommand<SetLock>("Lock setting", (draft, { path, isLocked }) => {
  const others = locksOf(draft as LoopDocument).filter((one) => one !== path);
  writeLocks(draft, isLocked ? [...others, path] : others);
});

export function writeLocks(draft: Draft<LoopDocument>, locks: readonly string[]): void {
  const unread = draft.unread ?? { nodes: {}, edges: [] };
  const { [KEY]: _, ...layout } = unread.layout ?? {};
  if (locks.length > 0) layout[KEY] = [...locks];
  if (Object.keys(layout).length > 0) unread.layout = layout;
  else delete unread.layout;
  if (isAllRead(unread as NonNullable<LoopDocument["unread"]>)) delete draft.unread;
  else draft.unread = unread;
}
