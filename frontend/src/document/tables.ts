/** Rows of a file or of a text that was pasted, as far as the page has to know them; and what their columns may be. Pure. */
import type { Json, JsonObject } from "@/api/types";
import { isObject } from "@/lib/paths";

const PLAIN_TEXT = /\.(jsonl|ndjson|json|csv|tsv)$/i;

/** Names that columns have elsewhere, by the name that nodes read; the first that is there is taken. */
const KNOWN_AS: Readonly<Record<string, readonly string[]>> = {
  prompt: ["question", "problem", "query", "instruction", "input", "messages", "source"],
  answer: ["final_answer", "ground_truth", "gold", "label", "expected_answer", "solution"],
  target: ["output", "response", "completion", "answer_text", "solution"],
  chosen: ["preferred", "better", "winner", "positive"],
  rejected: ["dispreferred", "worse", "loser", "negative"],
};

export const ROLES = Object.keys(KNOWN_AS);

/** A mapping of columns for a dataset, "name in the loop: name in the source", for names that the rows lack. */
export function guessColumns(columns: readonly string[]): Record<string, string> {
  const plain = new Map(
    columns.map((name) => [name.toLowerCase().replaceAll(/[\s-]+/g, "_"), name]),
  );
  const found: Record<string, string> = {};
  const used = new Set<string>();
  for (const [role, others] of Object.entries(KNOWN_AS)) {
    if (columns.includes(role)) continue;
    const name = [role, ...others]
      .map((other) => plain.get(other))
      .find((one) => one && !used.has(one));
    if (name === undefined) continue;
    found[role] = name;
    used.add(name);
  }
  // What is compared with is what is imitated, where there is nothing else for one of them.
  const { answer, target } = found;
  if (target === undefined && !columns.includes("target")) {
    const own = answer ?? (columns.includes("answer") ? "answer" : undefined);
    if (own !== undefined) found.target = own;
  }
  return found;
}

/** The columns of the first row of a text in the format of its file's name; null where they are not known so. */
export function columnsOf(name: string, text: string): string[] | null {
  if (!PLAIN_TEXT.test(name)) return null;
  const rows = /\.json$/i.test(name)
    ? jsonRows(text)
    : /\.(csv|tsv)$/i.test(name)
      ? [headOf(name, text)]
      : lineRows(text, 1);
  const [first] = rows ?? [];
  return first ? Object.keys(first) : null;
}

function headOf(name: string, text: string): JsonObject {
  const [line = ""] = text.split(/\r?\n/, 1);
  const names = cellsOf(line, /\.tsv$/i.test(name) ? "\t" : ",");
  return Object.fromEntries(names.map((one) => [one, ""]));
}

function jsonRows(text: string): JsonObject[] | null {
  try {
    const read: unknown = JSON.parse(text);
    const list = Array.isArray(read)
      ? read
      : isObject(read)
        ? Object.values(read).find(Array.isArray)
        : null;
    return list?.filter(isObject) ?? null;
  } catch {
    return null;
  }
}

function lineRows(text: string, most: number): JsonObject[] | null {
  const rows: JsonObject[] = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    if (rows.length === most) break;
    try {
      const row: unknown = JSON.parse(line);
      if (!isObject(row)) return null;
      rows.push(row);
    } catch {
      return null;
    }
  }
  return rows;
}

/** Cells of a line of a table; a cell in quotes may hold the sign between them. */
function cellsOf(line: string, sign: string): string[] {
  const cells: string[] = [];
  let cell = "";
  let isQuoted = false;
  for (let at = 0; at < line.length; at += 1) {
    const letter = line[at];
    if (letter === '"' && isQuoted && line[at + 1] === '"') {
      cell += '"';
      at += 1;
    } else if (letter === '"') isQuoted = !isQuoted;
    else if (letter === sign && !isQuoted) {
      cells.push(cell);
      cell = "";
    } else cell += letter;
  }
  return [...cells, cell].map((one) => one.trim());
}

/** Keys of parts of a loop: a text that has them is no row. */
const OF_LOOPS = ["kind", "nodes", "edges", "coloop"];

/** Rows in a text that was pasted: JSON Lines, a JSON list of objects, or a table with tabs and a line of names. */
export function pastedRows(text: string): Record<string, Json>[] | null {
  const told = text.trim();
  const rows = told.startsWith("[")
    ? jsonRows(told)
    : told.startsWith("{")
      ? lineRows(told, Number.POSITIVE_INFINITY)
      : tabRows(told);
  if (!rows || rows.length === 0) return null;
  const isLoop = rows.some((row) => OF_LOOPS.some((key) => key in row));
  return isLoop ? null : (rows as Record<string, Json>[]);
}

function tabRows(text: string): JsonObject[] | null {
  const [head, ...lines] = text.split(/\r?\n/).map((line) => line.split("\t"));
  if (!head || head.length < 2 || lines.length === 0 || head.some((name) => name.trim() === ""))
    return null;
  if (lines.some((cells) => cells.length !== head.length)) return null;
  return lines.map((cells) =>
    Object.fromEntries(head.map((name, at) => [name.trim(), cells[at] ?? ""])),
  );
}
