import { createContext, useContext, useRef } from "react";
import type { Json, JsonObject } from "@/api/types";
import { presetOf, withPreset } from "@/catalog/presets";
import type { Field } from "@/catalog/schema";
import { defaultsOf, isSimple } from "@/catalog/shapes";
import { problemsAt } from "@/document/problems";
import { formatName } from "@/lib/format";
import type { Path } from "@/lib/paths";
import { useCatalog } from "@/state/document/context";
import { RichText } from "@/ui/RichText";
import { AnyField } from "./AnyField";
import { FieldProblems } from "./FieldProblems";
import { placeOf, useForm } from "./FormContext";
import { JsonWidget } from "./JsonWidget";
import { useLabel } from "./Labels";
import { RemoveField } from "./RemoveField";
import { type ObjectField, standingOf } from "./shownFields";

export const SectionContext = createContext<string | null | undefined>(undefined);

interface ObjectFieldsProps {
  field: ObjectField;
  path: Path;
  value: JsonObject;
  without?: readonly string[];
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

/**
 * Names of the fields whose value changed while the form was open at this level. An emptied one is still there
 * to be typed in, and one that was set elsewhere a moment ago is seen.
 */
function useTouched(value: JsonObject, level: string): ReadonlySet<string> {
  const seen = useRef({ level, began: value, names: new Set<string>() });
  if (seen.current.level !== level) seen.current = { level, began: value, names: new Set() };
  const { began, names } = seen.current;
  for (const name of new Set([...Object.keys(began), ...Object.keys(value)])) {
    if (began[name] !== value[name]) names.add(name);
  }
  return names;
}

function PresetNote({ help, formula }: { help: string; formula: string }) {
  return (
    <div className="py-1 text-muted text-xs">
      {help ? (
        <p>
          <RichText text={help} />
        </p>
      ) : null}
      {formula ? (
        <p className="mt-1 overflow-x-auto rounded-1 bg-sunken px-2 py-1 font-mono text-2xs">
          {formula}
        </p>
      ) : null}
    </div>
  );
}

interface UnknownFieldProps {
  title: string;
  path: Path;
  value: Json | undefined;
}

/** A key that the catalog does not know. It is kept, shown and can be removed. */
function UnknownField({ title, path, value }: UnknownFieldProps) {
  const form = useForm();
  const label = useLabel(title);
  const isLocked = form.lockReason !== null;
  const { full, id } = placeOf(form, path);
  return (
    <div data-field={full} className="py-1">
      <div className="flex items-center gap-2">
        <label
          htmlFor={id}
          className="w-[42%] shrink-0 truncate text-error text-xs"
          title={`${title} is not a known field`}
        >
          {title}
        </label>
        <JsonWidget
          id={id}
          label={label}
          value={value}
          isDisabled={isLocked}
          onChange={(next) => form.write(path, next)}
        />
        <RemoveField name={label} path={path} isLocked={isLocked} />
      </div>
      <FieldProblems problems={problemsAt(form.diagnostics, full, false)} />
    </div>
  );
}
