/**
 * Groups of nodes, kept in the layout of the loop, which no compiler reads: a frame around them, or one card in their
 * place while the group is closed. A group is a list of nodes, or all that run in a pool. Pure.
 */
import type { Catalog, Json, JsonObject } from "@/api/types";
import { isObject } from "@/lib/paths";
import { poolOf } from "./pools";
import type { Group, LoopDocument } from "./types";

export const GROUPS = "$groups";

/** No node has such a name. */
const CARD = "$group:";

export function groupCard(name: string): string {
  return `${CARD}${name}`;
}

export function groupOfCard(id: string): string | null {
  return id.startsWith(CARD) ? id.slice(CARD.length) : null;
}

/** Those that read; null where something in them does not, so that nothing of it is lost. */
export function readGroups(value: Json | undefined): Record<string, Group> | null {
  if (!isObject(value)) return null;
  const groups: Record<string, Group> = {};
  for (const [name, raw] of Object.entries(value)) {
    const group = isObject(raw) ? readGroup(raw) : null;
    if (!group) return null;
    groups[name] = group;
  }
  return groups;
}

function readGroup({ nodes, pool, closed, ...more }: JsonObject): Group | null {
  if (Object.keys(more).length > 0) return null;
  const shut = closed === true ? { closed } : {};
  if (typeof pool === "string" && nodes === undefined) return { pool, ...shut };
  const isList = Array.isArray(nodes) && nodes.every((id) => typeof id === "string");
  return isList && pool === undefined ? { nodes: nodes as string[], ...shut } : null;
}

export function membersOf(catalog: Catalog, document: LoopDocument, group: Group): string[] {
  if (group.pool === undefined) return (group.nodes ?? []).filter((id) => id in document.nodes);
  return Object.keys(document.nodes).filter((id) => poolOf(catalog, document, id) === group.pool);
}

export function isPoolClosed({ groups = {} }: LoopDocument, pool: string): boolean {
  return Object.values(groups).some((group) => group.pool === pool && group.closed === true);
}

/** A free name like this one. */
export function newGroupName({ groups = {} }: LoopDocument, wish: string): string {
  if (!(wish in groups)) return wish;
  let number = 2;
  while (`${wish} ${number}` in groups) number += 1;
  return `${wish} ${number}`;
}
