import type { Catalog, Json, KindInfo, ModeInfo } from "@/api/types";
import { type Field, readSchema } from "@/catalog/schema";
import { chosenVariant } from "@/catalog/shapes";
import { isObject } from "@/lib/paths";
import { portRef } from "./edges";
import type { LoopDocument, NodeData } from "./types";

/**
 * What a mode begins a node of the kind with. Where that names another node it names its kind, and the first node of that kind
 * is taken, one that something flows out of if there is any. A name for which there is no node yet is left
 * out where it may be.
 */
export function beginNode(
  catalog: Catalog,
  document: LoopDocument,
  kind: KindInfo,
  mode: ModeInfo,
): NodeData {
  const template = mode.of_kind[kind.kind]?.template ?? kind.template;
  return nameNodes(catalog, document, { ...structuredClone(template), kind: kind.kind });
}

/**
 * A node whose mentions of a kind become the first node of that kind, one that something flows out of if there is
 * any. A kind of which there is no node is left out where it may be; `own` names are left as they are.
 */
export function nameNodes(
  catalog: Catalog,
  document: LoopDocument,
  data: NodeData,
  own: ReadonlySet<string> = new Set(),
): NodeData {
  const kind = catalog.kinds[data.kind];
  if (!kind) return data;
  const named = fill(data, readSchema(kind.schema), (name) => {
    if (own.has(name) || name in document.nodes || !(name in catalog.kinds)) return name;
    const ofKind = Object.keys(document.nodes).filter((id) => document.nodes[id]?.kind === name);
    const giving = new Set(document.edges.map((edge) => portRef(edge.from).node));
    return ofKind.find((id) => giving.has(id)) ?? ofKind[0] ?? null;
  });
  return { ...(isObject(named) ? named : {}), kind: data.kind };
}

function fill(value: Json, field: Field, find: (name: string) => string | null): Json {
  if (field.shape === "tagged" || field.shape === "variants") {
    const chosen = chosenVariant(field, value);
    return chosen ? fill(value, chosen.field, find) : value;
  }
  if (field.shape !== "object" || !isObject(value)) return value;
  const filled = { ...value };
  for (const { name, field: own, isRequired } of field.properties()) {
    const item = filled[name];
    if (item === undefined) continue;
    if (own.reference !== "node") {
      filled[name] = fill(item, own, find);
      continue;
    }
    const found = Array.isArray(item)
      ? item.map((one) => foundName(one, find)).filter((one) => one !== null)
      : foundName(item, find);
    if (found !== null && !(Array.isArray(found) && found.length === 0)) filled[name] = found;
    else if (!isRequired) delete filled[name];
  }
  return filled;
}

function foundName(item: Json, find: (name: string) => string | null): Json {
  if (typeof item !== "string") return item;
  const [node = "", ...port] = item.split(".");
  const found = find(node);
  return found === null ? null : [found, ...port].join(".");
}
