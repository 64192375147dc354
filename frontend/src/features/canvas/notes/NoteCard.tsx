import { useReactFlow } from "@xyflow/react";
import { GripHorizontal, X } from "lucide-react";
import { type KeyboardEvent, type PointerEvent, useEffect, useRef, useState } from "react";
import { MIN_NOTE } from "@/document/notes";
import type { Note, Point } from "@/document/types";
import { GRID } from "@/graph/geometry";
import { toLoop, useDetail } from "@/state/canvas";
import { setNote } from "@/state/commands/fields";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { usePreferences } from "@/state/preferences";
import { useNewNote } from "@/state/useAddNode";

const BUTTON =
  "flex h-5 w-6 items-center justify-center rounded-[4px] text-muted hover:bg-hover hover:text-text";

export function NoteCard({ id, note }: { id: string; note: Note }) {
  const { dispatch } = useOpenLoop().store;
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
      className="canvas-note nopan nodrag nowheel pointer-events-auto absolute -z-1 flex flex-col rounded-[8px] border border-[color-mix(in_oklab,var(--warning-mark)_35%,var(--line))] bg-[color-mix(in_oklab,var(--warning-mark)_12%,var(--surface))] shadow-1 focus-within:z-1"
      style={{
        left: left * by.x,
        top: top * by.y,
        width: Math.max(MIN_NOTE[0], width) * by.x,
        height: Math.max(MIN_NOTE[1], height) * by.y,
      }}
    >
      {isReadonly ? null : (
        <header className="flex h-5.5 items-center px-1 compact:hidden">
          <button
            type="button"
            aria-label="Move the note"
            title="Move the note"
            className={`${BUTTON} cursor-grab touch-none`}
            {...move.handle}
          >
            <GripHorizontal size={14} />
          </button>
          <span className="flex-1" />
          <button
            type="button"
            aria-label="Delete the note"
            title="Delete the note"
            className={BUTTON}
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
        className="min-h-0 flex-1 resize-none rounded-[6px] px-2.5 pt-0.5 pb-2 text-[12px] text-text leading-[1.4] placeholder:text-muted compact:text-[calc(11px*var(--unzoom))]"
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
          className="absolute right-0 bottom-0 flex size-4 cursor-nwse-resize touch-none items-center justify-center rounded-[4px] after:size-[7px] after:border-line-strong after:border-r-2 after:border-b-2 hover:bg-hover compact:hidden"
          {...grow.handle}
        />
      )}
    </section>
  );
}

const STEPS: Record<string, Point> = {
  ArrowLeft: [-GRID, 0],
  ArrowRight: [GRID, 0],
  ArrowUp: [0, -GRID],
  ArrowDown: [0, GRID],
};

/** A point of the canvas that is dragged by a handle; told of once it is let go. Arrow keys move it by a step. */
function useNoteDrag(point: Point, onDone: (point: Point) => void) {
  const { getZoom } = useReactFlow();
  const [dragged, setDragged] = useState<Point | null>(null);

  const onPointerDown = (event: PointerEvent) => {
    if (event.button !== 0) return;
    event.stopPropagation();
    const handle = event.currentTarget;
    const [startX, startY] = [event.clientX, event.clientY];
    const zoom = getZoom();
    const grid = usePreferences.getState().snapsToGrid ? GRID : 1;
    const at = (now: globalThis.PointerEvent): Point => {
      const by = toLoop({ x: (now.clientX - startX) / zoom, y: (now.clientY - startY) / zoom });
      return [
        Math.round((point[0] + by.x) / grid) * grid,
        Math.round((point[1] + by.y) / grid) * grid,
      ];
    };
    const listening = new AbortController();
    const options = { signal: listening.signal };
    window.addEventListener("pointermove", (now) => setDragged(at(now)), options);
    const end = (now: globalThis.PointerEvent | null) => {
      listening.abort();
      setDragged(null);
      if (now && (now.clientX !== startX || now.clientY !== startY)) onDone(at(now));
    };
    window.addEventListener("pointerup", end, options);
    window.addEventListener("pointercancel", () => end(null), options);
    if (handle instanceof HTMLElement) handle.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    onDone([point[0] + step[0], point[1] + step[1]]);
  };
  return { value: dragged ?? point, handle: { onPointerDown, onKeyDown } };
}
