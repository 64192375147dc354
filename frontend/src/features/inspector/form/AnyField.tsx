import type { Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { isLong, isSimple } from "@/catalog/shapes";
import { joinPath, type Path } from "@/lib/paths";
import { Control } from "./Control";
import { FieldRow } from "./FieldRow";
import { useForm } from "./FormContext";
import { GroupField } from "./GroupField";
import { useLabel } from "./Labels";
import { ListField } from "./ListField";
import { MapField } from "./MapField";
import { UnionField } from "./UnionField";

export interface AnyFieldProps<S extends Field["shape"] = Field["shape"]> {
  field: Extract<Field, { shape: S }>;
  path: Path;
  value: Json | undefined;
  isRequired: boolean;
  isUnread?: boolean;
}

/** A field of any shape; of several nodes at once it says where they differ. */
export function AnyField(props: AnyFieldProps) {
  const values = useForm().differing?.get(joinPath(props.path));
  if (values === undefined) return <OneField {...props} />;
  return (
    <div>
      <OneField {...props} />
      <p className="pb-1 text-warning text-xs">Differs: {values}</p>
    </div>
  );
}

function OneField(props: AnyFieldProps) {
  const { field } = props;
  const label = useLabel(field.title);
  if (isSimple(field) || isLong(field) || field.shape === "json") {
    return (
      <FieldRow {...props} isWide={isLong(field)}>
        <Control {...props} label={label} />
      </FieldRow>
    );
  }
  switch (field.shape) {
    case "list":
      return <ListField {...props} field={field} />;
    case "map":
      return <MapField {...props} field={field} />;
    case "tagged":
    case "variants":
      return <UnionField {...props} field={field} />;
    case "object":
      return <GroupField {...props} field={field} />;
    default:
      return null;
  }
}
