import { createContext, useContext } from "react";
import type { JsonObject } from "@/api/types";
import { presetOf, withPreset } from "@/catalog/presets";
import type { Field } from "@/catalog/schema";
import { defaultsOf, isSimple } from "@/catalog/shapes";
import { useCatalog } from "@/document/context";
import { formatName } from "@/lib/format";
import type { Path } from "@/lib/paths";
import { AnyField } from "./AnyField";
import { useForm } from "./FormContext";
import { PresetNote } from "./PresetNote";
import { type ObjectField, standingOf } from "./shownFields";
import { UnknownField } from "./UnknownField";
import { useTouched } from "./useTouched";

/** The part of the form around; undefined in a form without parts. */
export const SectionContext = createContext<string | null | undefined>(undefined);

interface ObjectFieldsProps {
  field: ObjectField;
  path: Path;
  value: JsonObject;
  /** Properties that are shown elsewhere. */
  without?: readonly string[];
  /** Only these, and nothing that is not known. */
  only?: readonly string[];
}

/**
 * The properties of an object that fit the chosen level, single values first. What is wrong, or was changed a
 * moment ago, is shown at every level; keys that the schema does not know are shown as they are.
 */
export function ObjectFields({ field, path, value, without = [], only }: ObjectFieldsProps) {
  const form = useForm();
  const catalog = useCatalog();
  const section = useContext(SectionContext);
  const preset = presetOf(catalog, field, path, value);
  const properties = withPreset(field.properties(), preset);
  const touched = useTouched(value, form.level);
  const defaults = defaultsOf(properties);
  const names = new Set(properties.map((property) => property.name));
  const standing = new Map(
    properties.map((property) => [
      property.name,
      standingOf(form, path, property, value, defaults, touched),
    ]),
  );
  const shown = properties.filter(({ name, field: own }) => {
    if (without.includes(name) || (only && !only.includes(name))) return false;
    // What stands in another part of the form is not shown twice.
    if (section !== undefined && (own.section ?? section) !== section) return false;
    return standing.get(name) === "shown" || standing.get(name) === "unread";
  });
  const ordered = [
    ...shown.filter((property) => isSimple(property.field)),
    ...shown.filter((property) => !isSimple(property.field)),
  ];
  const unknown =
    field.extra || only
      ? []
      : Object.keys(value).filter(
          (key) => !names.has(key) && !without.includes(key) && value[key] !== undefined,
        );

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
          isUnread={standing.get(property.name) === "unread"}
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
      {field.extra && !only
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
