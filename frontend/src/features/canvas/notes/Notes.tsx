import { ViewportPortal } from "@xyflow/react";
import { useDocument } from "@/document/context";
import { NoteCard } from "./NoteCard";

/** The notes of the loop, on the canvas below the boxes. */
export function Notes() {
  const notes = useDocument((state) => state.document.notes);
  if (!notes) return null;
  return (
    <ViewportPortal>
      {Object.entries(notes).map(([id, note]) => (
        <NoteCard key={id} id={id} note={note} />
      ))}
    </ViewportPortal>
  );
}
