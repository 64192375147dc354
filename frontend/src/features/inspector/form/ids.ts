import { joinPath, type Path } from "@/lib/paths";

/** The id of a field's control, the same wherever the field is shown. */
export function fieldId(base: Path, path: Path): string {
  return `field-${joinPath([...base, ...path]).replaceAll(/[^\w.-]/g, "_")}`;
}
