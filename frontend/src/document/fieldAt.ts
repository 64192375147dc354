/** Finds the schema field for a path in the loop, and its default. Pure. */
import type { Catalog, Json, JsonSchema } from "@/api/types";
import { presetOf, withPreset } from "@/catalog/presets";
import { type Field, readSchema, sectionSchema } from "@/catalog/schema";
import { chosenVariant } from "@/catalog/shapes";
import { isObject, type Path, readPath } from "@/lib/paths";
import { findPlace } from "./place";
import type { LoopDocument } from "./types";

/** The value at a path while nothing is set; `undefined` where there is no default or no known field. */
export function defaultAt(catalog: Catalog, document: LoopDocument, path: Path): Json | undefined {
  return fieldAt(catalog, document, path)?.fallback;
}

/** The field at a path; null where the catalog knows of none. */
export function fieldAt(catalog: Catalog, document: LoopDocument, path: Path): Field | null {
  const schema = schemaOf(catalog, document, path);
  if (!schema) return null;
  const depth = path[0] === "nodes" || path[0] === "edges" ? 2 : 1;
  const place = findPlace(document, path);
  const inside = path.slice(depth);
  let field: Field | null = readSchema(schema);
  for (const [index, key] of inside.entries()) {
    const value = readPath(place.root, place.path.slice(0, depth + index)) ?? field.fallback;
    field = stepInto(catalog, field, inside.slice(0, index), value, key);
    if (!field) return null;
  }
  return field;
}

function schemaOf(catalog: Catalog, document: LoopDocument, path: Path): JsonSchema | undefined {
  const [head, id] = path;
  if (head === "nodes") return catalog.kinds[document.nodes[String(id)]?.kind ?? ""]?.schema;
  return sectionSchema(catalog, head === "edges" ? "edge" : String(head));
}

function stepInto(
  catalog: Catalog,
  field: Field,
  at: Path,
  value: Json | undefined,
  key: string | number,
): Field | null {
  switch (field.shape) {
    case "object": {
      const preset = presetOf(catalog, field, at, isObject(value) ? value : {});
      const properties = withPreset(field.properties(), preset);
      return properties.find((property) => property.name === key)?.field ?? field.extra;
    }
    case "tagged":
    case "variants": {
      const variant = chosenVariant(field, value);
      return variant ? stepInto(catalog, variant.field, at, value, key) : null;
    }
    case "list":
      return field.fixed?.[Number(key)]?.() ?? field.item();
    case "map":
      return field.item();
    default:
      return null;
  }
}
