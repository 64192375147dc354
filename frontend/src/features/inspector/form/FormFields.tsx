import { ChevronRight, EyeOff } from "lucide-react";
import { Collapsible } from "radix-ui";
import { useEffect, useId, useMemo, useState } from "react";
import { create } from "zustand";
import type { JsonObject } from "@/api/types";
import {
  type FormSection,
  type SectionFields,
  sectionAt,
  sectionsOf,
  summariseSection,
} from "@/catalog/sections";
import { belongs, defaultsOf } from "@/catalog/shapes";
import { problemsAt, toneOf } from "@/document/problems";
import { formatPlural } from "@/lib/format";
import { isObject, joinPath, parsePath, readPath } from "@/lib/paths";
import { useCatalog, useDocument } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { Button } from "@/ui/Button";
import { SeverityIcon } from "@/ui/SeverityIcon";
import { FormContext, useForm } from "./FormContext";
import { FlatContext } from "./Group";
import { FormLabels, GroupLabels } from "./Labels";
import { ObjectFields, SectionContext } from "./ObjectFields";
import { countAbove, type ObjectField, standingOf } from "./shownFields";

interface FormFieldsProps {
  field: ObjectField;
  value: JsonObject;
  without?: readonly string[];
}

export function FormFields({ field, value, without = [] }: FormFieldsProps) {
  const form = useForm();
  const catalog = useCatalog();
  const [isAsked, setAsked] = useState(false);
  const parts = useMemo(() => sectionsOf(catalog, field), [catalog, field]);
  const kept = useMemo(
    () => countAbove(catalog, form, field, [], leaveOut(value, without)),
    [catalog, form, field, value, without],
  );
  const inside = useMemo(() => ({ ...form, showsChanged: isAsked }), [form, isAsked]);
  return (
    <FormContext value={inside}>
      <FormLabels form={field}>
        <SectionContext value={parts.length > 0 ? null : undefined}>
          <ObjectFields
            field={field}
            path={[]}
            value={value}
            without={[...without, ...parts.flatMap((part) => topNames(part.fields))]}
          />
        </SectionContext>
        {parts.map((part) => (
          <FormPart key={part.name} part={part} root={field} value={value} without={without} />
        ))}
      </FormLabels>
      {kept > 0 ? (
        <div className="flex items-center gap-2 border-line border-t py-1.5 text-muted text-xs">
          <EyeOff size={14} aria-hidden className="shrink-0" />
          <p className="min-w-0 flex-1">
            {isAsked
              ? "Changed values above this level are shown."
              : `${formatPlural(kept, "changed value")} hidden at this level`}
          </p>
          <Button size="small" look="quiet" onClick={() => setAsked(!isAsked)}>
            {isAsked ? "Hide" : "Show"}
          </Button>
        </div>
      ) : null}
    </FormContext>
  );
}

function topNames(fields: readonly { path: string[]; names: string[] }[]): string[] {
  return fields.filter(({ path }) => path.length === 0).flatMap(({ names }) => names);
}

function leaveOut(value: JsonObject, without: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !without.includes(name)));
}

interface FormPartProps {
  part: FormSection;
  root: ObjectField;
  value: JsonObject;
  without: readonly string[];
}

const NONE: ReadonlySet<string> = new Set();

/** Fields that fold together. Closed, they are a line; what was edited last is open. */
function FormPart({ part, root, value, without }: FormPartProps) {
  const form = useForm();
  const catalog = useCatalog();
  const titleId = useId();
  const isEdited = useIsEditedLast(root, part.name);
  const { open, toggle } = useOpenParts();
  const fields = part.fields
    .map((one) => ({ ...one, names: one.names.filter((name) => isThere(one, name)) }))
    .filter(({ names }) => names.length > 0);
  const places = fields.flatMap(({ path, names }) =>
    names.map((name) => joinPath([...form.base, ...path, name])),
  );
  const problems = places.flatMap((place) => problemsAt(form.diagnostics, place, false));
  const worst = toneOf(catalog, problems);
  useOpenedByProblem(part.name, places);
  const isOpen = open[part.name] ?? (part.opens || isEdited || worst === "error");
  if (fields.length === 0) return null;

  function isThere({ path, field, titles }: SectionFields, name: string): boolean {
    if (titles.length === 0 && without.includes(name)) return false;
    const holder = objectAt(value, path);
    const properties = field.properties();
    const property = properties.find((one) => one.name === name);
    if (!property || !belongsAll(path)) return false;
    const standing = standingOf(form, path, property, holder, defaultsOf(properties), NONE);
    return standing === "shown" || standing === "unread";
  }
  function belongsAll(path: readonly string[]): boolean {
    let here: JsonObject = value;
    let properties = part.fields.find((one) => one.path.length === 0)?.field.properties();
    for (const key of path) {
      const property = properties?.find((one) => one.name === key);
      if (!property) return true;
      const isOff = property.field.isNullable && (here[key] ?? null) === null;
      if (isOff || !belongs(property.field, here, defaultsOf(properties ?? []))) return false;
      const next = here[key];
      here = isObject(next) ? next : {};
      properties = property.field.shape === "object" ? property.field.properties() : undefined;
    }
    return true;
  }
  const [first, ...others] = fields;
  const isOne = others.length === 0 && first?.path.length === 0 && first.names.length === 1;
  return (
    <Collapsible.Root
      open={isOpen}
      onOpenChange={(next) => toggle(part.name, next)}
      className="-mx-4 border-line border-t px-4 py-1 first:border-t-0"
    >
      <Collapsible.Trigger className="flex min-h-9 w-full items-center gap-2 text-left">
        <ChevronRight
          size={14}
          className={`shrink-0 text-faint transition-transform ${isOpen ? "rotate-90" : ""}`}
        />
        <h2 id={titleId} className="shrink-0 font-semibold text-sm">
          {part.title}
        </h2>
        {worst && !isOpen ? <SeverityIcon severity={worst} size={13} /> : null}
        <span className="min-w-0 flex-1 truncate text-right text-muted text-xs">
          {summariseSection(catalog, { ...part, fields }, value)}
        </span>
      </Collapsible.Trigger>
      <Collapsible.Content role="group" aria-labelledby={titleId} className="pb-1">
        <SectionContext value={part.name}>
          <FlatContext value={isOne ? (places[0] ?? null) : null}>
            {fields.map((one) => (
              <GroupLabels key={one.path.join(".")} titles={one.titles}>
                <ObjectFields
                  field={one.field}
                  path={one.path}
                  value={objectAt(value, one.path)}
                  only={one.names}
                />
              </GroupLabels>
            ))}
          </FlatContext>
        </SectionContext>
      </Collapsible.Content>
    </Collapsible.Root>
  );
}

function objectAt(value: JsonObject, path: readonly string[]): JsonObject {
  const found = readPath(value, path);
  return isObject(found) ? found : {};
}

function useOpenedByProblem(part: string, places: readonly string[]): void {
  const focus = useSelection((state) => state.focus);
  const toggle = useOpenParts((state) => state.toggle);
  const field = focus?.field;
  const isWanted =
    field != null && places.some((place) => field === place || field.startsWith(`${place}.`));
  useEffect(() => {
    if (isWanted && focus) toggle(part, true);
  }, [isWanted, focus, toggle, part]);
}

function useIsEditedLast(root: ObjectField, part: string): boolean {
  const form = useForm();
  const last = useDocument((state) => state.history.past.at(-1)?.group ?? null);
  const scope = `${joinPath(form.scope)}.`;
  if (!last?.startsWith(scope)) return false;
  return sectionAt(root, parsePath(last.slice(scope.length))) === part;
}

interface OpenParts {
  open: Readonly<Record<string, boolean>>;
  toggle: (part: string, isOpen: boolean) => void;
}

export const useOpenParts = create<OpenParts>()((set, get) => ({
  open: {},
  toggle: (part, isOpen) => set({ open: { ...get().open, [part]: isOpen } }),
}));
