/**
 * Where a loop names a node, and how those places follow when the node gets another name.
 *
 * Known are the field names under which language.md puts node ids, never node kinds: `of: actor`,
 * `learn: [actor.rewards]`, `nodes.actor.…` paths, `{{ actor.completion }}` in templates.
 */
import type { Json } from "@/api/types";
import { isObject } from "@/lib/paths";

/** Fields whose text (or list of texts) is a node id or begins with one and a dot. */
const NODE_FIELDS = new Set([
  "of",
  "with",
  "instead_of",
  "node",
  "from",
  "to",
  "by",
  "gather",
  "group_by",
  "learn",
  "order",
  "fill",
  "until",
  "metric",
  "complement",
  "best",
  "refresh",
  "reset_optimizer",
  "clear",
  "columns",
]);

/** Fields that name a value of the loop in one place and a file or a hub id in another. */
const PATH_FIELDS = new Set(["path"]);

/** Mappings whose keys are node ids, or begin with one. */
const NODE_KEYED = new Set(["weights", "learn", "set", "clear", "refresh"]);

const TEMPLATE_MARKS = /\{\{|\{%/;

/** The same value with every mention of node `from` turned into `to`. Returns the value itself where nothing changes. */
export function renameReferences(value: Json, from: string, to: string): Json {
  return visit(value, null, from, to);
}

function visit(value: Json, field: string | null, from: string, to: string): Json {
  if (typeof value === "string") return renameText(value, field, from, to);
  if (Array.isArray(value)) {
    const items = value.map((item) => visit(item, field, from, to));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (!isObject(value)) return value;
  let changed = false;
  const renamed: Record<string, Json | undefined> = {};
  for (const [key, item] of Object.entries(value)) {
    const newKey = field !== null && NODE_KEYED.has(field) ? renameHead(key, from, to) : key;
    const newItem = item === undefined ? undefined : visit(item, key, from, to);
    changed ||= newKey !== key || newItem !== item;
    renamed[newKey] = newItem;
  }
  return changed ? renamed : value;
}

function renameText(text: string, field: string | null, from: string, to: string): string {
  if (TEMPLATE_MARKS.test(text)) {
    const mention = new RegExp(`(?<![\\w.])${from}(?=\\.\\w)`, "g");
    return text.replace(mention, to);
  }
  if (field === null) return text;
  if (NODE_FIELDS.has(field)) return renameHead(text, from, to);
  return PATH_FIELDS.has(field) ? renamePath(text, from, to) : text;
}

/** "actor", "actor.rewards" and "nodes.actor.…" follow; "actors" does not. */
export function renameHead(text: string, from: string, to: string): string {
  if (text === from || text.startsWith(`${from}.`)) return to + text.slice(from.length);
  return renamePath(text, from, to);
}

/** "nodes.actor.…" follows; "actor.jsonl" does not. */
function renamePath(text: string, from: string, to: string): string {
  const path = `nodes.${from}`;
  if (text === path || text.startsWith(`${path}.`)) return `nodes.${to}${text.slice(path.length)}`;
  return text;
}
