/**
 * Where a loop mentions a node, and how those places follow when the node gets another name. Which texts
 * mention nodes, and how, is marked in the catalog's schemas; a text without a mark is left alone.
 */
import type { Catalog, Json } from "@/api/types";
import { type Field, type Reference, readSchema, sectionSchema } from "@/catalog/schema";
import { chosenVariant } from "@/catalog/shapes";
import { isObject, parsePath } from "@/lib/paths";
import { portRef, portText } from "./edges";
import { fieldAt } from "./fieldAt";
import type { LoopDocument, NodeData } from "./types";

export interface Renaming {
  catalog: Catalog;
  document: LoopDocument;
  from: string;
  to: string;
}

/** Whether a text mentions columns and nodes between braces. */
export function isTemplate({ reference }: Field): boolean {
  return reference === "template";
}

/** The nodes of a loop, or of a part of one, by their new names and with every mention renamed. */
export function renameInNodes(
  nodes: Readonly<Record<string, NodeData>>,
  renaming: Renaming,
): Record<string, NodeData> {
  const renamed = Object.entries(nodes).map(([id, node]) => [id, renameInNode(node, renaming)]);
  return renameKey(Object.fromEntries(renamed), renaming);
}

export function renameKey<V>(
  record: Readonly<Record<string, V>>,
  { from, to }: Pick<Renaming, "from" | "to">,
): Record<string, V> {
  return Object.fromEntries(
    Object.entries(record).map(([id, value]) => [id === from ? to : id, value]),
  );
}

/** An end of an edge, "node.port". */
export function renameEnd(end: string, { from, to }: Pick<Renaming, "from" | "to">): string {
  const { node, port } = portRef(end);
  return node === from ? portText({ node: to, port }) : end;
}

/** A node of any kind, with every mention in it renamed. The same value where nothing changes. */
function renameInNode(node: Json, renaming: Renaming): Json {
  const kind = isObject(node) ? renaming.catalog.kinds[String(node.kind)] : undefined;
  return kind ? visit(node, readSchema(kind.schema), renaming) : node;
}

export function renameInSection(section: string, value: Json, renaming: Renaming): Json {
  const schema = sectionSchema(renaming.catalog, section);
  return schema ? visit(value, readSchema(schema), renaming) : value;
}

function visit(value: Json, field: Field, by: Renaming, mark = field.reference): Json {
  if (typeof value === "string") return mark ? renameText(value, mark, by) : value;
  if (field.shape === "tagged" || field.shape === "variants") {
    const chosen = chosenVariant(field, value);
    // A value with something unknown in it is of no variant; what any of them marks is followed.
    const variants = chosen ? [chosen] : field.variants;
    return variants.reduce<Json>(
      (now, one) => visit(now, one.field, by, one.field.reference ?? mark),
      value,
    );
  }
  if (Array.isArray(value)) {
    const items = value.map((item, index) => {
      const own = field.shape === "list" ? (field.fixed?.[index]?.() ?? field.item()) : null;
      return own ? visit(item, own, by, own.reference ?? mark) : item;
    });
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  return isObject(value) ? visitObject(value, field, by, mark) : value;
}

function visitObject(
  value: Record<string, Json | undefined>,
  field: Field,
  by: Renaming,
  mark: Reference | null,
): Json {
  let isChanged = false;
  const renamed: Record<string, Json | undefined> = {};
  for (const [key, item] of Object.entries(value)) {
    const newKey = field.keyReference ? renameText(key, field.keyReference, by) : key;
    const own = fieldOf(key, field, by);
    const handed = own?.reference ?? (field.shape === "map" ? mark : null);
    const newItem = item !== undefined && own ? visit(item, own, by, handed) : item;
    isChanged ||= newKey !== key || newItem !== item;
    renamed[newKey] = newItem;
  }
  return isChanged ? renamed : value;
}

/** The field of an entry. Where the keys are paths through the loop, it is the field at that path. */
function fieldOf(key: string, field: Field, { catalog, document }: Renaming): Field | null {
  if (field.keyReference === "path") return fieldAt(catalog, document, parsePath(key));
  if (field.shape === "map") return field.item();
  if (field.shape !== "object") return null;
  return field.properties().find((property) => property.name === key)?.field ?? field.extra;
}

function renameText(text: string, mark: Reference, { from, to }: Renaming): string {
  switch (mark) {
    case "node":
      return renameWords(text, from, to, 0, 1);
    case "metric":
      return renameWords(text, from, to, 0, text.split(".").length - 1);
    case "path":
      return renameWords(text, from, to, 1, 2);
    case "template":
      return text.replace(BLOCK, (block) => renameInBlock(block, from, to));
  }
}

function renameWords(text: string, from: string, to: string, first: number, end: number): string {
  const words = text.split(".");
  return words.map((word, at) => (word === from && at >= first && at < end ? to : word)).join(".");
}

const BLOCK = /\{\{.*?\}\}|\{%.*?%\}/gs;
const QUOTED_OR_NAME = /"[^"]*"|'[^']*'|(?<![\w.])[A-Za-z_]\w*(?=\s*[.[])/g;

/** In Jinja a node is a name that something is asked of; a quoted text is none. */
function renameInBlock(block: string, from: string, to: string): string {
  return block.replace(QUOTED_OR_NAME, (word) => (word === from ? to : word));
}
