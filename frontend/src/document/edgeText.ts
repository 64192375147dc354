/** What an edge says about its options, in a few words: those that the catalog has words for. Pure. */
import type { Catalog } from "@/api/types";
import { readSchema } from "@/catalog/schema";
import type { Edge } from "./types";

export function edgeText({ schema }: Pick<Catalog, "schema">, edge: Edge): string {
  const field = readSchema(schema.edge);
  const options = field.shape === "object" ? field.properties() : [];
  const words = options.flatMap(({ name, field: { short } }) => {
    const value = edge[name];
    return short === null || value === undefined || value === null
      ? []
      : [short.replace("{}", () => String(value))];
  });
  return words.join(" · ");
}
