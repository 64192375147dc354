/** A difference of two versions in words: where, and what became of it. Pure. */
import type { Catalog, Json } from "@/api/types";
import { isObject } from "@/lib/paths";
import type { Difference } from "./sync/merge";

export interface DifferenceText {
  /** A node's name, "connections", or the part of the loop. */
  where: string;
  what: string;
}

export function differenceText(
  catalog: Catalog,
  { path, before, after }: Difference,
): DifferenceText {
  const [head = "", id, ...rest] = path.map(String);
  if (head === "edges" && id !== undefined) {
    const ends = id.replace(/#\d+$/, "").replace("->", " → ");
    if (rest.length > 0) return { where: ends, what: `${rest.join(".")} ${change(before, after)}` };
    const word = before === undefined ? "connected" : "disconnected";
    return { where: "connections", what: `${ends} ${word}` };
  }
  if (head === "nodes" && id !== undefined) {
    if (rest.length > 0) return { where: id, what: `${rest.join(".")} ${change(before, after)}` };
    const node = after ?? before;
    const kind = isObject(node) ? String(node.kind) : "";
    const title = catalog.kinds[kind]?.title ?? kind;
    return { where: id, what: before === undefined ? `added, ${title}` : "removed" };
  }
  const inside = path.slice(1).join(".");
  return { where: head, what: `${inside} ${change(before, after)}`.trim() };
}

function change(before: Json | undefined, after: Json | undefined): string {
  if (before === undefined) return `set to ${valueText(after)}`;
  return after === undefined
    ? `no longer ${valueText(before)}`
    : `${valueText(before)} → ${valueText(after)}`;
}

const LONGEST = 60;

/** A value in a line; undefined: nothing is there. */
export function valueText(value: Json | undefined): string {
  if (value === undefined) return "nothing";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const line = text.replaceAll("\n", " ⏎ ");
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line;
}
