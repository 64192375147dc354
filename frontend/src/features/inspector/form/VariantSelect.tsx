import type { Json } from "@/api/types";
import { namesOf } from "@/catalog/presets";
import type { Field, Variant } from "@/catalog/schema";
import { chosenVariant, defaultText } from "@/catalog/shapes";
import { changeVariant } from "@/catalog/variants";
import { useCatalog } from "@/document/context";
import { joinPath, type Path } from "@/lib/paths";
import { useVisits } from "@/session/useVisits";
import { Select, type SelectOption } from "@/ui/Select";
import { useForm } from "./FormContext";
import { fieldId } from "./ids";

interface VariantSelectProps {
  field: Extract<Field, { shape: "tagged" | "variants" }>;
  path: Path;
  value: Json | undefined;
  label: string;
  isRequired: boolean;
}

/** Which shape a union has. Going to another keeps what both have; coming back restores what was there. */
export function VariantSelect({ field, path, value, label, isRequired }: VariantSelectProps) {
  const form = useForm();
  const catalog = useCatalog();
  const visitsOf = useVisits();
  const chosen = chosenVariant(field, value);
  const fallback = chosenVariant(field, field.fallback);
  const names = namesOf(catalog, field);

  const isOffered = ({ key }: Variant) =>
    key === chosen?.key || !names.has(key) || !form.hidden.algorithms.has(key);
  const options: SelectOption<string>[] = field.variants
    .filter(isOffered)
    .map(({ key, title, field: own }) => ({
      value: key,
      label: names.get(key)?.title ?? title,
      help: names.get(key)?.help ?? (field.shape === "tagged" ? own.help : undefined),
    }));
  if (!chosen || !isRequired) {
    const byDefault = defaultText(field) || fallback?.title;
    const unset = fallback ? `${byDefault} (default)` : isRequired ? "choose…" : "not set";
    options.unshift({ value: "", label: unset, isUnset: true });
  }
  return (
    <Select
      id={fieldId(form.base, field.shape === "tagged" ? [...path, field.tag] : path)}
      label={label}
      value={chosen?.key ?? ""}
      options={options}
      isDisabled={form.isLocked(field)}
      onChange={(key) => {
        const tag = field.shape === "tagged" ? field.tag : "";
        const visits = visitsOf(`${joinPath([...form.scope, ...path])} ${tag}`);
        const to = field.variants.find((one) => one.key === key) ?? null;
        form.write(path, changeVariant(visits, field, value, to));
      }}
    />
  );
}
