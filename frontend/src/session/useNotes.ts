import { useCallback } from "react";
import { create } from "zustand";
import { setNote } from "@/document/commands/setNote";
import { useOpenLoop } from "@/document/context";
import { freeNotePlace, NOTE_SIZE, newNoteId } from "@/document/notes";

/** The note that was just added and waits to be written in. */
export const useNewNote = create<{ id: string | null }>()(() => ({ id: null }));

/** Adds an empty note near a point of the canvas, beside what is there. */
export function useAddNote(): (at: { x: number; y: number }) => void {
  const { catalog, store } = useOpenLoop();
  return useCallback(
    ({ x, y }) => {
      const { document, dispatch } = store.getState();
      const id = newNoteId(document.notes);
      useNewNote.setState({ id });
      dispatch(
        setNote,
        { id, note: { at: freeNotePlace(catalog, document, [x, y]), size: NOTE_SIZE, text: "" } },
        { label: "Add note" },
      );
    },
    [catalog, store],
  );
}
