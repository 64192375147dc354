/** What a new node begins as. Pure. */
import type { Catalog, Json, KindInfo } from "@/api/types";
import { type Field, readSchema } from "@/catalog/schema";
import { chosenVariant } from "@/catalog/shapes";
import { isObject } from "@/lib/paths";
import { portRef } from "./edges";
import type { LoopDocument, NodeData } from "./types";

/**
 * The kind's template. Where that names another node it names its kind, and the first node of that kind
 * is taken, one that something flows out of if there is any. A name for which there is no node yet is left
 * out where it may be.
 */
export function beginNode(catalog: Catalog, document: LoopDocument, kind: KindInfo): NodeData {
  const begun = fill(structuredClone(kind.template), readSchema(kind.schema), (name) => {
    if (name in document.nodes || !(name in catalog.kinds)) return name;
    const ofKind = Object.keys(document.nodes).filter((id) => document.nodes[id]?.kind === name);
    const giving = new Set(document.edges.map((edge) => portRef(edge.from).node));
    return ofKind.find((id) => giving.has(id)) ?? ofKind[0] ?? null;
  });
  return { ...(isObject(begun) ? begun : {}), kind: kind.kind };
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
    if (own.reference !== "node" || typeof item !== "string") {
      filled[name] = fill(item, own, find);
      continue;
    }
    const found = find(item);
    if (found !== null) filled[name] = found;
    else if (!isRequired) delete filled[name];
  }
  return filled;
}
