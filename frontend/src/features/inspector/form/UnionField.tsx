import { namesOf, presetOf } from "@/catalog/presets";
import type { Variant } from "@/catalog/schema";
import { chosenVariant, defaultText, isFlat, isSimple } from "@/catalog/shapes";
import { changeVariant } from "@/catalog/variants";
import { isObject, joinPath } from "@/lib/paths";
import { useCatalog } from "@/state/document/context";
import { useVisits } from "@/state/useVisits";
import { RichText } from "@/ui/RichText";
import { Select, type SelectOption } from "@/ui/Select";
import { AnyField, type AnyFieldProps } from "./AnyField";
import { Control } from "./Control";
import { FieldRow } from "./FieldRow";
import { placeOf, useForm } from "./FormContext";
import { Group } from "./Group";
import { useLabel } from "./Labels";
import { ObjectFields } from "./ObjectFields";

export function UnionField(props: AnyFieldProps<"tagged" | "variants">) {
  const { field, path, value } = props;
  const label = useLabel(field.title);
  const chosen = chosenVariant(field, value);
  const isTagged = field.shape === "tagged";
  const select = <VariantSelect {...props} label={`${label}, ${isTagged ? field.tag : "type"}`} />;
  if (isFlat(field)) {
    return (
      <FieldRow {...props} isWide>
        <div className="flex gap-1">
          <span className="w-2/5 shrink-0">{select}</span>
          {chosen ? <Control {...props} field={chosen.field} label={label} /> : null}
        </div>
      </FieldRow>
    );
  }
  return (
    <Group
      {...props}
      startsOpen={value !== undefined && path.length <= 2}
      aside={<span className="w-[calc(50%-4px)] shrink-0">{select}</span>}
    >
      {chosen ? (
        <Inside
          chosen={chosen}
          title={field.title}
          path={path}
          value={value}
          tags={isTagged ? [field.tag] : []}
        />
      ) : null}
    </Group>
  );
}

interface InsideProps extends Pick<AnyFieldProps, "path" | "value"> {
  chosen: Variant;
  title: string;
  tags: readonly string[];
}

/** The fields of the chosen shape; a union within it asks for its own tag first, on the same level. */
function Inside({ chosen, title, path, value, tags }: InsideProps) {
  const { field } = chosen;
  const catalog = useCatalog();
  const tagLabel = useLabel(field.shape === "tagged" ? field.tagTitle : "");
  if (field.shape === "object") {
    const inside = isObject(value) ? value : {};
    const isSaidBelow = presetOf(catalog, field, path, inside)?.help === field.help;
    return (
      <>
        {isSaidBelow || !field.help ? null : (
          <p className="py-1 text-muted text-xs">
            <RichText text={field.help} />
          </p>
        )}
        <ObjectFields field={field} path={path} value={inside} without={tags} />
      </>
    );
  }
  if (field.shape !== "tagged" || tags.length === 0) {
    return (
      <AnyField
        field={{ ...field, title: isSimple(field) ? title : chosen.title }}
        path={path}
        value={value}
        isRequired
      />
    );
  }
  const inner = chosenVariant(field, value);
  return (
    <>
      <FieldRow
        field={{ ...field, title: field.tagTitle, help: "" }}
        path={[...path, field.tag]}
        value={inner?.key}
        isRequired
      >
        <VariantSelect field={field} path={path} value={value} label={tagLabel} isRequired />
      </FieldRow>
      {inner ? (
        <Inside
          chosen={inner}
          title={title}
          path={path}
          value={value}
          tags={[...tags, field.tag]}
        />
      ) : null}
    </>
  );
}

interface VariantSelectProps extends AnyFieldProps<"tagged" | "variants"> {
  label: string;
}

/** Which shape a union has. Going to another keeps what both have; coming back restores what was there. */
function VariantSelect({ field, path, value, label, isRequired }: VariantSelectProps) {
  const form = useForm();
  const catalog = useCatalog();
  const visitsOf = useVisits();
  const chosen = chosenVariant(field, value);
  const fallback = chosenVariant(field, field.fallback);
  const names = namesOf(catalog, field);

  const isOffered = ({ key }: Variant) =>
    key === chosen?.key || !names.has(key) || !form.hidden.algorithms.includes(key);
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
      id={placeOf(form, field.shape === "tagged" ? [...path, field.tag] : path).id}
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
