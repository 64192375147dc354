/** A value of a node that is one of several: what else it can be, and what is written for it. Pure. */
import type { Catalog, Json } from "@/api/types";
import { namesOf } from "@/catalog/presets";
import type { Field } from "@/catalog/schema";
import { chosenVariant } from "@/catalog/shapes";
import { changeVariant, type Visits } from "@/catalog/variants";
import { joinPath, type Path, readPath } from "@/lib/paths";
import { fieldAt } from "./fieldAt";
import { hasSuggestions, suggestionsOf } from "./suggestions";
import type { LoopDocument } from "./types";

type Tagged = Extract<Field, { shape: "tagged" }>;

export interface PickOption {
  value: string;
  label: string;
  help?: string | undefined;
}

export interface Picked {
  options: readonly PickOption[];
  isOpen: boolean;
  write: (value: string, visitsOf: (place: string) => Visits) => { path: Path; value: Json };
}

export function pickAt(
  catalog: Catalog,
  document: LoopDocument,
  id: string,
  path: Path,
  hidden: readonly string[],
): Picked | null {
  const around = path.slice(0, -1);
  const value = readPath(document.nodes[id], around) as Json | undefined;
  const union = unionOf(fieldAt(catalog, document, ["nodes", id, ...around]), value, path.at(-1));
  if (union) return pickVariant(catalog, union, ["nodes", id], around, value, hidden);
  const field = fieldAt(catalog, document, ["nodes", id, ...path]);
  if (field?.shape === "choice") {
    const titles = titlesOf(catalog, field);
    const options = field.choices
      .map((choice) => ({ value: choice.label, label: choice.label, ...titles.get(choice.label) }))
      .filter((option) => !titles.has(option.value) || !hidden.includes(option.value));
    const of = (label: string) => field.choices.find((one) => one.label === label)?.value ?? null;
    return { options, isOpen: false, write: (label) => ({ path, value: of(label) }) };
  }
  if (field?.shape !== "text" || !hasSuggestions(field)) return null;
  const listed = suggestionsOf(catalog, document, field, document.nodes[id] ?? null);
  const options = listed
    .filter((one) => one.value !== id)
    .map((one) => ({ value: one.value, label: one.value, help: one.title }));
  return { options, isOpen: true, write: (text) => ({ path, value: text }) };
}

/** The union that this key of a value tells apart; one can stand within another. */
function unionOf(
  field: Field | null,
  value: Json | undefined,
  key: string | number | undefined,
): Tagged | null {
  if (field?.shape !== "tagged" && field?.shape !== "variants") return null;
  if (field.shape === "tagged" && field.tag === key) return field;
  return unionOf(chosenVariant(field, value)?.field ?? null, value, key);
}

function pickVariant(
  catalog: Catalog,
  union: Tagged,
  scope: Path,
  path: Path,
  value: Json | undefined,
  hidden: readonly string[],
): Picked {
  const names = namesOf(catalog, union);
  const options = union.variants
    .filter(({ key }) => !names.has(key) || !hidden.includes(key))
    .map(({ key, title, field }) => ({
      value: key,
      label: names.get(key)?.title ?? title,
      help: names.get(key)?.help ?? field.help,
    }));
  return {
    options,
    isOpen: false,
    write: (key, visitsOf) => {
      const to = union.variants.find((one) => one.key === key) ?? null;
      const visits = visitsOf(`${joinPath([...scope, ...path])} ${union.tag}`);
      return { path, value: changeVariant(visits, union, value, to) ?? null };
    },
  };
}

function titlesOf(
  catalog: Catalog,
  { choosesFrom }: Field,
): ReadonlyMap<string, { label: string; help: string }> {
  if (choosesFrom !== "algorithms") return new Map();
  const all = Object.values(catalog.algorithms).flat();
  return new Map(all.map(({ name, title, help }) => [name, { label: title, help }]));
}
