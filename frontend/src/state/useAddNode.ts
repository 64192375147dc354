import { useCallback } from "react";
import { create } from "zustand";
import { NOTE_SIZE, newNoteId } from "@/document/notes";
import { freeNotePlace } from "@/graph/freePlace";
import type { AddOptions } from "./addNode";
import { setNote } from "./commands/fields";
import { useMode, useOpenLoop } from "./document/context";

export const BLOCK_DRAG = "application/x-coloop-block";
export const NODE_DRAG = "application/x-coloop-node";

/** Adds a node once what adds one is loaded. */
export function useAddNode(): (options: AddOptions) => Promise<string> {
  const { catalog, store } = useOpenLoop();
  const mode = useMode();
  return useCallback(
    async (options) => {
      const { addNodeTo } = await import("./addNode");
      return addNodeTo({ catalog, store, mode }, options);
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
