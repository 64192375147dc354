import { GripHorizontal, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { setNote } from "@/document/commands/setNote";
import { useDocument } from "@/document/context";
import { MIN_NOTE } from "@/document/notes";
import type { Note } from "@/document/types";
import { useDetail } from "@/session/detail";
import { useNewNote } from "@/session/useNotes";
import { useNoteDrag } from "./useNoteDrag";

/** Words on the canvas: moved by their head, made larger by their corner, both by pointer and arrow keys. */
export function NoteCard({ id, note }: { id: string; note: Note }) {
  const dispatch = useDocument((state) => state.dispatch);
  const isReadonly = useDocument((state) => state.isReadonly);
  const [typed, setTyped] = useState<string | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const isNew = useNewNote((state) => state.id === id);
  const move = useNoteDrag(note.at, (at) =>
    dispatch(setNote, { id, note: { at } }, { label: "Move note", group: `note ${id}` }),
  );
  const grow = useNoteDrag(note.size, ([width, height]) =>
    dispatch(
      setNote,
      { id, note: { size: [Math.max(MIN_NOTE[0], width), Math.max(MIN_NOTE[1], height)] } },
      { label: "Resize note", group: `note size ${id}` },
    ),
  );
  useEffect(() => {
    if (!isNew) return;
    field.current?.focus();
    useNewNote.setState({ id: null });
  }, [isNew]);

  const by = useDetail((state) => state.squeeze) ?? { x: 1, y: 1 };
  const [left, top] = move.value;
  const [width, height] = grow.value;
  const keep = () => {
    if (typed !== null) dispatch(setNote, { id, note: { text: typed } });
    setTyped(null);
  };
  return (
    <section
      aria-label={`Note: ${note.text || "empty"}`}
      className="canvas-note nopan nodrag nowheel"
      style={{
        left: left * by.x,
        top: top * by.y,
        width: Math.max(MIN_NOTE[0], width) * by.x,
        height: Math.max(MIN_NOTE[1], height) * by.y,
      }}
    >
      {isReadonly ? null : (
        <header>
          <button type="button" aria-label="Move the note" title="Move the note" {...move.handle}>
            <GripHorizontal size={14} />
          </button>
          <span className="flex-1" />
          <button
            type="button"
            aria-label="Delete the note"
            title="Delete the note"
            onClick={() => dispatch(setNote, { id, note: null }, { label: "Delete note" })}
          >
            <X size={14} />
          </button>
        </header>
      )}
      <textarea
        ref={field}
        aria-label="Text of the note"
        placeholder="Write a note"
        readOnly={isReadonly}
        value={typed ?? note.text}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={keep}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
      {isReadonly ? null : (
        <button
          type="button"
          aria-label="Size of the note"
          title="Size of the note"
          className="canvas-note-corner"
          {...grow.handle}
        />
      )}
    </section>
  );
}
