import type { JsonObject } from "@/api/types";
import { presetOf, withPreset } from "@/catalog/presets";
import type { Field, Property } from "@/catalog/schema";
import { belongs, defaultsOf, isSimple } from "@/catalog/shapes";
import { useCatalog } from "@/document/context";
import { problemsAt } from "@/document/problems";
import { formatName } from "@/lib/format";
import { joinPath, type Path } from "@/lib/paths";
import { AnyField } from "./AnyField";
import { levelRank, useForm } from "./FormContext";
import { PresetNote } from "./PresetNote";
import { UnknownField } from "./UnknownField";
import { useEverSet } from "./useEverSet";

interface ObjectFieldsProps {
  field: Extract<Field, { shape: "object" }>;
  path: Path;
  value: JsonObject;
  /** Properties that are shown elsewhere. */
  without?: readonly string[];
}

/**
 * The properties of an object that fit the chosen level, single values first. What is wrong, set, or was
 * set a moment ago is shown at every level, unless the loop's mode leaves it to others; keys that the schema does not know are shown as they are.
 */
export function ObjectFields({ field, path, value, without = [] }: ObjectFieldsProps) {
  const form = useForm();
  const catalog = useCatalog();
  const preset = presetOf(catalog, field, path, value);
  const properties = withPreset(field.properties(), preset);
  const everSet = useEverSet(value, form.level);
  const defaults = defaultsOf(properties);
  const names = new Set(properties.map((property) => property.name));
  const shown = properties.filter((property) => isShown(property));
  const ordered = [
    ...shown.filter((property) => isSimple(property.field)),
    ...shown.filter((property) => !isSimple(property.field)),
  ];
  const unknown = field.extra
    ? []
    : Object.keys(value).filter(
        (key) => !names.has(key) && !without.includes(key) && value[key] !== undefined,
      );

  function isShown({ name, field: own, isRequired }: Property): boolean {
    if (without.includes(name) || own.shape === "constant") return false;
    const place = joinPath([...form.base, ...path, name]);
    if (problemsAt(form.diagnostics, place, false).length > 0) return true;
    if (form.hidden.fields.has(place)) return false;
    if (everSet.has(name)) return true;
    if (own.isHidden || !belongs(own, value, defaults)) return false;
    return isRequired || levelRank(form, own.level) <= levelRank(form, form.level);
  }

  return (
    <>
      {preset ? <PresetNote help={preset.help} formula={preset.formula} /> : null}
      {ordered.map((property) => (
        <AnyField
          key={property.name}
          field={property.field}
          path={[...path, property.name]}
          value={value[property.name]}
          isRequired={property.isRequired}
        />
      ))}
      {unknown.map((name) => (
        <UnknownField
          key={name}
          title={formatName(name)}
          path={[...path, name]}
          value={value[name]}
        />
      ))}
      {field.extra
        ? Object.keys(value)
            .filter((key) => !names.has(key) && !without.includes(key))
            .map((key) => (
              <AnyField
                key={key}
                field={{ ...(field.extra as Field), title: formatName(key) }}
                path={[...path, key]}
                value={value[key]}
                isRequired={false}
              />
            ))
        : null}
    </>
  );
}
