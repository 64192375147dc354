import { joinPath, type Path } from "@/lib/paths";

export function fieldId(base: Path, path: Path): string {
  return `field-${joinPath([...base, ...path]).replaceAll(/[^\w.-]/g, "_")}`;
}
