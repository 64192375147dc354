/**
 * What can be added to a loop to give scores: one entry for each leaf of the union that says where a kind's
 * numbers come from. Pure; kinds are told by their ports and the marks of their schemas, never by name.
 */
import type { Catalog, Json, JsonObject, KindInfo } from "@/api/types";
import { formatName } from "@/lib/format";
import { isObject } from "@/lib/paths";
import { type Field, readSchema } from "./schema";
import { chosenVariant, emptyValue } from "./shapes";

export interface ScorerChoice {
  kind: KindInfo;
  name: string;
  title: string;
  help: string;
  data: JsonObject;
  isCode: boolean;
}

export interface CodePlace {
  path: readonly string[];
  field: Field;
  text: string;
}

const CODE = "code";

/** Kinds that give what a port of this type takes, and of which a form of the user's own code is one. */
export function scorerChoices(catalog: Catalog, type: string): ScorerChoice[] {
  return Object.values(catalog.kinds)
    .filter((kind) => kind.outputs[0]?.type === type)
    .flatMap((kind) => choicesOf(kind));
}

function choicesOf(kind: KindInfo): ScorerChoice[] {
  const form = readSchema(kind.schema);
  if (form.shape !== "object") return [];
  const property = form
    .properties()
    .find(({ field, isRequired }) => isRequired && field.shape === "tagged");
  if (!property) return [];
  return leaves(property.field).map(({ field, tags, name }) => {
    const begun = emptyValue(field);
    return {
      kind,
      name,
      title: formatName(name),
      help: helpOf(field, tags),
      data: {
        ...rest(kind, property.name),
        [property.name]: { ...(isObject(begun) ? begun : {}), ...tags },
      },
      isCode: codeIn(field, begun, []) !== null,
    };
  });
}

function rest(kind: KindInfo, without: string): JsonObject {
  const begun = isObject(kind.template) ? { ...kind.template } : {};
  delete begun[without];
  return { ...begun, kind: kind.kind };
}

interface Leaf {
  field: Field;
  tags: JsonObject;
  name: string;
}

function leaves(field: Field, tags: JsonObject = {}, name = ""): Leaf[] {
  if (field.shape !== "tagged") return [{ field, tags, name }];
  return field.variants.flatMap(({ key, field: own }) =>
    leaves(own, { ...tags, [field.tag]: key }, key),
  );
}

function helpOf(field: Field, tags: JsonObject): string {
  const tag = Object.keys(tags).at(-1) ?? "";
  if (field.shape !== "object") return field.help;
  const own = field.properties().find(({ name }) => name === tag)?.field.help ?? "";
  return field.help || own;
}

export function codeOf(kind: KindInfo | undefined, data: Json | undefined): CodePlace | null {
  return kind ? codeIn(readSchema(kind.schema), data, []) : null;
}

function codeIn(field: Field, value: Json | undefined, path: readonly string[]): CodePlace | null {
  if (field.widget === CODE) {
    return { path, field, text: typeof value === "string" ? value : "" };
  }
  if (field.shape === "tagged" || field.shape === "variants") {
    const chosen = value === undefined ? null : chosenVariant(field, value);
    return chosen ? codeIn(chosen.field, value, path) : null;
  }
  if (field.shape !== "object" || !isObject(value)) return null;
  for (const { name, field: own } of field.properties()) {
    const found = codeIn(own, value[name], [...path, name]);
    if (found !== null) return found;
  }
  return null;
}
