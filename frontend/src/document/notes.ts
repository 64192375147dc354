/**
 * Notes on the canvas: words for people, kept in the layout of the loop. No compiler reads them. Pure.
 */
import type { Catalog, Json, JsonObject } from "@/api/types";
import { isObject } from "@/lib/paths";
import { boxesOf } from "./boxes";
import { GRID } from "./geometry";
import type { LoopDocument, Note, Point } from "./types";

/** Their place in a layout. No node can have this name. */
export const NOTES = "$notes";
export const NOTE_SIZE: Point = [208, 112];
export const MIN_NOTE: Point = [112, 64];

/** Those that read; null where something in them does not, so that nothing of it is lost. */
export function readNotes(value: Json | undefined): Record<string, Note> | null {
  if (!isObject(value)) return null;
  const notes: Record<string, Note> = {};
  for (const [id, raw] of Object.entries(value)) {
    const note = isObject(raw) ? readNote(raw) : null;
    if (!note) return null;
    notes[id] = note;
  }
  return notes;
}

function readNote({ at, size, text }: JsonObject): Note | null {
  const place = readPoint(at);
  if (!place || typeof text !== "string") return null;
  return { at: place, size: readPoint(size) ?? NOTE_SIZE, text };
}

function readPoint(value: Json | undefined): Point | null {
  const [x, y] = Array.isArray(value) ? value : [];
  return typeof x === "number" && typeof y === "number" ? [x, y] : null;
}

export function writeNotes(notes: Record<string, Note>): JsonObject {
  return Object.fromEntries(
    Object.entries(notes).map(([id, { at, size, text }]) => [id, { at, size, text }]),
  );
}

export function newNoteId(notes: Record<string, Note> | undefined): string {
  let number = 1;
  while (notes && `note_${number}` in notes) number += 1;
  return `note_${number}`;
}

/** The first place at or below a wish at which a new note covers no box and no other note. */
export function freeNotePlace(catalog: Catalog, document: LoopDocument, [x, y]: Point): Point {
  const [width, height] = NOTE_SIZE;
  const taken = [
    ...boxesOf(catalog, document),
    ...Object.values(document.notes ?? {}).map(({ at, size }) => ({
      x: at[0],
      y: at[1],
      width: size[0],
      height: size[1],
    })),
  ].filter((box) => x < box.x + box.width + GRID && box.x < x + width + GRID);
  const left = Math.round(x / GRID) * GRID;
  let top = Math.round(y / GRID) * GRID;
  const below = (at: number) =>
    taken.find((box) => at < box.y + box.height + GRID && box.y < at + height + GRID);
  for (let box = below(top); box; box = below(top)) {
    top = Math.ceil((box.y + box.height + GRID) / GRID) * GRID;
  }
  return [left, top];
}
