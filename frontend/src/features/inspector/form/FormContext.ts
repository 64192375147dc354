import { createContext, useContext } from "react";
import type { Diagnostic, Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { joinPath, type Path } from "@/lib/paths";

export interface FormSettings {
  level: string;
  levels: readonly string[];
  /** Path of the form's own object in words of the diagnostics; "" for a node. */
  base: Path;
  /** Path of the form's own object in the loop. */
  scope: Path;
  diagnostics: readonly Diagnostic[];
  /** What the loop's mode leaves to other modes and is not asked for: paths from the form's base, algorithms. */
  hidden: { fields: readonly string[]; algorithms: readonly string[] };
  showsChanged?: boolean;
  /** Whether a number may be kept as it was typed though it is none: the check then says so. */
  keepsWrong: boolean;
  differing?: ReadonlyMap<string, string>;
  isLocked: (field: Field) => boolean;
  lockReason: string | null;
  /** Writes or, with `undefined`, removes a value; the first `keep` keys of its path stay, empty or not. */
  write: (path: Path, value: Json | undefined, keep?: number) => void;
}

/** What a control of a field is given. */
export interface WidgetProps<F extends Field = Field> {
  id: string;
  label: string;
  field: F;
  path: Path;
  value: Json | undefined;
  isRequired: boolean;
  isDisabled: boolean;
  onChange: (value: Json | undefined) => void;
}

export const FormContext = createContext<FormSettings | null>(null);
/** Path of the group around. What a union takes is a group or a field of its own at the path of the union. */
export const AroundContext = createContext<string | null>(null);

export function useForm(): FormSettings {
  const form = useContext(FormContext);
  if (form === null) throw new Error("A field belongs inside a form.");
  return form;
}

/** Where a field of the form stands in words of the diagnostics, and the id of its control. */
export function placeOf(form: FormSettings, path: Path): { full: string; id: string } {
  const full = joinPath([...form.base, ...path]);
  return { full, id: `field-${full.replaceAll(/[^\w.-]/g, "_")}` };
}

export function levelRank(form: FormSettings, level: string): number {
  return Math.max(0, form.levels.indexOf(level));
}
