/**
 * Notes on the canvas: words for people, kept in the layout of the loop. No compiler reads them. Pure.
 */
import type { Json, JsonObject } from "@/api/types";
import { isObject } from "@/lib/paths";
import type { Note, Point } from "./types";

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

export function newNoteId(notes: Record<string, Note> | undefined): string {
  let number = 1;
  while (notes && `note_${number}` in notes) number += 1;
  return `note_${number}`;
}
