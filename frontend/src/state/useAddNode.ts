import { useCallback } from "react";
import { create } from "zustand";
import type { KindInfo } from "@/api/types";
import { beginNode } from "@/document/beginNode";
import { fittingPort, spliceOf } from "@/document/canConnect";
import { edgeIndex, portText } from "@/document/edges";
import { freeName } from "@/document/names";
import { naturalEdges } from "@/document/natural";
import { NOTE_SIZE, newNoteId } from "@/document/notes";
import { poolField } from "@/document/pools";
import type { Point, PortRef } from "@/document/types";
import { freeNotePlace, freePlace, placeOnward } from "@/graph/freePlace";
import { select, useSelection } from "@/state/selection";
import { reveal } from "./canvas";
import { setNote } from "./commands/fields";
import { addNode, insertOnEdge } from "./commands/nodes";
import { useMode, useOpenLoop } from "./document/context";

export const BLOCK_DRAG = "application/x-coloop-block";
export const NODE_DRAG = "application/x-coloop-node";

interface AddOptions {
  kind: KindInfo;
  at: { x: number; y: number };
  /** Whether nobody pointed at a place, and `at` is the middle of the view. */
  isUnplaced?: boolean | undefined;
  from?: (PortRef & { isOutput: boolean }) | undefined;
  edge?: string | null | undefined;
  pool?: string | null | undefined;
}

/** Adds a node as the mode begins one of its kind, connects it where it came from a port, and selects it. */
export function useAddNode(): (options: AddOptions) => string {
  const { catalog, store } = useOpenLoop();
  const mode = useMode();
  return useCallback(
    ({ kind, at, isUnplaced = false, from, edge: key = null, pool = null }) => {
      const { document } = store.getState();
      const id = freeName(kind.kind, new Set(Object.keys(document.nodes)));
      const begun = beginNode(catalog, document, kind, mode);
      const field = pool === null ? null : poolField(catalog, kind.kind);
      const data = field ? { ...begun, [field]: pool } : begun;
      const chosen = useSelection.getState().nodes.at(-1);
      const place = isUnplaced
        ? placeOnward(catalog, document, kind, at, chosen)
        : freePlace(catalog, document, kind, at);
      const label = `Add ${kind.title.toLowerCase()}`;
      const position: Point = [place.x, place.y];
      const cut = key === null ? undefined : document.edges[edgeIndex(document, key)];
      const ports = cut && spliceOf(catalog, document, cut, kind.kind);
      const port = from ? fittingPort(catalog, document, from, kind) : null;
      const ends = from && port ? [portText(from), portText({ node: id, port })] : [];
      const [start, end] = from?.isOutput ? ends : ends.toReversed();
      const drawn = start && end ? [{ from: start, to: end }] : [];
      const edges = from ? drawn : naturalEdges(catalog, document, id, data);
      if (key !== null && ports) {
        const positions = { [id]: position };
        store.dispatch(insertOnEdge, { key, node: id, ports, positions, data }, { label });
      } else {
        store.dispatch(addNode, { id, data, position, edges }, { label });
      }
      select({ nodes: [id] });
      reveal(id);
      return id;
    },
    [catalog, store, mode],
  );
}

export const useNewNote = create<{ id: string | null }>()(() => ({ id: null }));

export function useAddNote(): (at: { x: number; y: number }) => void {
  const { catalog, store } = useOpenLoop();
  return useCallback(
    ({ x, y }) => {
      const { document } = store.getState();
      const id = newNoteId(document.notes);
      useNewNote.setState({ id });
      store.dispatch(
        setNote,
        { id, note: { at: freeNotePlace(catalog, document, [x, y]), size: NOTE_SIZE, text: "" } },
        { label: "Add note" },
      );
    },
    [catalog, store],
  );
}
