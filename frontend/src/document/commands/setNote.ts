import { defineCommand } from "../command";
import type { Note } from "../types";

interface SetNote {
  id: string;
  /** What changes; a note that is new begins with all of it. `null` takes the note away. */
  note: Partial<Note> | null;
}

export const setNote = defineCommand<SetNote>("Edit note", (draft, { id, note }) => {
  const old = draft.notes?.[id];
  if (note === null) {
    if (!draft.notes || !old) return;
    delete draft.notes[id];
    if (Object.keys(draft.notes).length === 0) delete draft.notes;
    return;
  }
  if (old) Object.assign(old, note);
  else if (note.at && note.size && note.text !== undefined) {
    draft.notes ??= {};
    draft.notes[id] = { at: note.at, size: note.size, text: note.text };
  }
});
