/** Nodes by what is typed: their name, their kind, or a field and its value. Pure. */
import type { Catalog, Json } from "@/api/types";
import { isObject } from "@/lib/paths";
import type { LoopDocument } from "./types";

export interface FoundNode {
  id: string;
  /** What of it fits: its name or kind, or a field with its value. */
  where: string;
}

/** Those whose name fits come first, then those of a kind, then those with a field; each in the order of the loop. */
export function findNodes(catalog: Catalog, document: LoopDocument, text: string): FoundNode[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const fits = (value: string) => {
    const own = value.toLowerCase();
    return words.every((word) => own.includes(word));
  };
  const found: FoundNode[][] = [[], [], []];
  for (const [id, { kind, ...fields }] of Object.entries(document.nodes)) {
    const title = catalog.kinds[kind]?.title ?? kind;
    const field = linesOf(fields, "").find(fits);
    if (fits(id)) found[0]?.push({ id, where: title });
    else if (fits(title) || fits(kind)) found[1]?.push({ id, where: title });
    else if (field !== undefined) found[2]?.push({ id, where: field });
  }
  return found.flat();
}

function linesOf(value: Json | undefined, path: string): string[] {
  if (value === null || value === undefined) return [];
  const under = (key: string) => (path === "" ? key : `${path}.${key}`);
  if (Array.isArray(value)) return value.flatMap((one, at) => linesOf(one, under(String(at))));
  if (isObject(value)) {
    return Object.entries(value).flatMap(([key, one]) => linesOf(one, under(key)));
  }
  return [`${path}: ${value}`];
}
