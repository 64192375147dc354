import { useCallback, useMemo } from "react";
import { isPoolClosed, membersOf, newGroupName } from "@/document/groups";
import type { Group, LoopDocument } from "@/document/types";
import { foldOf } from "@/graph/folding";
import { useFolding } from "./canvas";
import { setGroup } from "./commands/groups";
import { useDocument, useOpenLoop } from "./document/context";
import { select, useSelection } from "./selection";

/** The loop as it is drawn: in a run, with the groups closed or open as this tab has them. */
export function useFoldedDocument(): () => LoopDocument {
  const { store, runId } = useOpenLoop();
  const closed = useFolding((state) => state.closed);
  return useCallback(() => {
    const { document } = store.getState();
    return runId === null ? document : withFolding(document, closed);
  }, [store, runId, closed]);
}

function withFolding(
  document: LoopDocument,
  closed: Readonly<Record<string, boolean>>,
): LoopDocument {
  if (Object.keys(closed).length === 0) return document;
  const groups: Record<string, Group> = { ...document.groups };
  for (const [name, isClosed] of Object.entries(closed)) {
    const { closed: _, ...group } = groups[name] ?? { pool: name };
    groups[name] = isClosed ? { ...group, closed: true } : group;
  }
  return { ...document, groups };
}

export function useFold() {
  const { catalog } = useOpenLoop();
  const read = useFoldedDocument();
  const groups = useDocument((state) => state.document.groups);
  const nodes = useDocument((state) => state.document.nodes);
  const edges = useDocument((state) => state.document.edges);
  // biome-ignore lint/correctness/useExhaustiveDependencies: they are what is read of the document
  return useMemo(() => foldOf(catalog, read()), [catalog, read, groups, nodes, edges]);
}

export function useGroups() {
  const { catalog, store, runId } = useOpenLoop();
  return useMemo(() => {
    const change = (name: string, group: Group | null, label: string, as?: string) =>
      store.dispatch(setGroup, { name, group, ...(as === undefined ? {} : { as }) }, { label });
    const setClosed = (name: string, isClosed: boolean, pool?: string) => {
      if (runId !== null) {
        const { closed } = useFolding.getState();
        useFolding.setState({ closed: { ...closed, [name]: isClosed } });
        return;
      }
      const { groups = {} } = store.getState().document;
      const { closed: _, ...group } = groups[name] ?? (pool === undefined ? {} : { pool });
      const verb = isClosed ? "Collapse" : "Expand";
      if (!isClosed && group.pool !== undefined) change(name, null, `${verb} ${name}`);
      else change(name, isClosed ? { ...group, closed: true } : group, `${verb} ${name}`);
    };
    return {
      /** Puts the selection in a group of its own. */
      group: () => {
        const { document } = store.getState();
        const nodes = useSelection.getState().nodes.filter((id) => id in document.nodes);
        if (nodes.length < 2) return;
        const name = newGroupName(document, "Group");
        change(name, { nodes: [...nodes] }, `Group ${nodes.length} nodes`);
      },
      ungroup: (name: string) => change(name, null, `Ungroup ${name}`),
      rename: (name: string, as: string) => {
        const group = store.getState().document.groups?.[name];
        if (group && as !== "") change(name, group, `Rename ${name}`, as);
      },
      setClosed,
      /** A pool is closed under its own name, unless a group has it. */
      closePool: (pool: string) => {
        const { document } = store.getState();
        if (isPoolClosed(document, pool)) return;
        const isTaken = document.groups?.[pool] !== undefined;
        setClosed(isTaken ? newGroupName(document, pool) : pool, true, pool);
      },
      selectMembers: (name: string) => {
        const { document } = store.getState();
        const group = document.groups?.[name] ?? { pool: name };
        select({ nodes: membersOf(catalog, document, group) });
      },
    };
  }, [catalog, store, runId]);
}
