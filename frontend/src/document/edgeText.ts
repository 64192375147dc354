/** What an edge says about its options, in a few words: those that the catalog has words for. Pure. */
import type { Catalog, Json } from "@/api/types";
import { type Field, readSchema } from "@/catalog/schema";
import type { Edge } from "./types";

export interface EdgeOption {
  name: string;
  field: Field;
  value: Json;
  text: string;
}

/** @param offersNumbers those that are not set as well, with what holds then */
export function edgeOptions(
  { schema }: Pick<Catalog, "schema">,
  edge: Edge,
  offersNumbers = false,
): EdgeOption[] {
  const form = readSchema(schema.edge);
  const options = form.shape === "object" ? form.properties() : [];
  return options.flatMap(({ name, field }) => {
    const value = edge[name] ?? (offersNumbers && field.shape === "number" ? field.fallback : null);
    return field.short === null || value === undefined || value === null
      ? []
      : [{ name, field, value, text: field.short.replace("{}", () => String(value)) }];
  });
}

export function edgeText(catalog: Pick<Catalog, "schema">, edge: Edge): string {
  return edgeOptions(catalog, edge)
    .map(({ text }) => text)
    .join(" · ");
}
