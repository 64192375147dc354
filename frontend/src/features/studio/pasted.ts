/** Rows as a person pastes them: JSON, JSON a line, or a completion a line. Pure. */
import type { Json } from "@/api/types";
import { isObject } from "@/lib/paths";

export const MAX_ROWS = 256;

export type Pasted = { rows: Record<string, Json>[] } | { problem: string };

export function readPasted(text: string): Pasted {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (lines.length === 0) return { problem: "Paste at least one row." };
  const whole = parse(text);
  const items = Array.isArray(whole)
    ? whole
    : isObject(whole)
      ? [whole]
      : lines.map((line) => parse(line) ?? line);
  if (items.length > MAX_ROWS) {
    return { problem: `${items.length} rows were pasted, at most ${MAX_ROWS} are scored.` };
  }
  return { rows: items.map(asRow) };
}

function asRow(item: Json): Record<string, Json> {
  if (!isObject(item)) return { completion: spoken(item) };
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, value ?? null]));
}

function spoken(item: Json): string {
  return typeof item === "string" ? item : JSON.stringify(item);
}

function parse(text: string): Json | undefined {
  try {
    const value: Json = JSON.parse(text);
    return typeof value === "object" ? value : undefined;
  } catch {
    return undefined;
  }
}

export const EXAMPLE = '{"prompt": "1+1=", "completion": "2", "answer": "2"}\n';
