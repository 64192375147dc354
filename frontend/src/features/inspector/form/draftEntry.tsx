/** An entry of a list or of a mapping that is still empty: in the page, not yet in the loop, and not blamed. */
import { type ReactNode, useEffect, useRef, useState } from "react";
import type { Json } from "@/api/types";
import { isObject, type Path, readPath, removePath, writePath } from "@/lib/paths";
import { FormContext, type FormSettings, useForm } from "./FormContext";
import { whenLeft } from "./leaving";

interface Begun {
  key: string | number;
  value: Json;
}

export interface DraftEntry {
  begun: Begun | null;
  add: (key: string | number, value: Json) => void;
  drop: () => void;
  finish: () => void;
  form: FormSettings;
}

/** The entry that is begun below a path. It goes into the loop once it is filled, or left. */
export function useDraftEntry(path: Path): DraftEntry {
  const form = useForm();
  const [begun, setBegun] = useState<Begun | null>(null);
  // Read by what follows in the same event: the field's own leaving comes before that of the entry.
  const now = useRef<Begun | null>(null);
  const show = (next: Begun | null) => {
    now.current = next;
    setBegun(next);
  };
  const finish = () => {
    const last = now.current;
    if (last === null) return;
    show(null);
    form.write([...path, last.key], last.value);
  };
  const write: FormSettings["write"] = (at, value) => {
    const last = now.current;
    if (last === null) return;
    const root = { whole: structuredClone(last.value) };
    const inside: Path = ["whole", ...at.slice(path.length + 1)];
    if (value !== undefined) writePath(root, inside, value);
    else if (typeof readPath(root, inside) === "string") writePath(root, inside, "");
    else removePath(root, inside, 1);
    show({ key: last.key, value: root.whole });
    if (!lacksText(root.whole)) finish();
  };
  return {
    begun,
    add: (key, value) => {
      finish();
      if (lacksText(value)) show({ key, value });
      else form.write([...path, key], value);
    },
    drop: () => show(null),
    finish,
    form: { ...form, diagnostics: [], write },
  };
}

/** A pair of texts of which one is there: it goes into the loop once both are, or it is left. */
export function useDraftWhole(path: Path) {
  const form = useForm();
  const [value, setValue] = useState<Json[] | null>(null);
  return {
    value,
    write: (next: Json[]) => {
      if (lacksText(next)) setValue(next);
      else {
        setValue(null);
        form.write(path, next);
      }
    },
    finish: () => {
      if (value === null) return;
      setValue(null);
      form.write(path, value);
    },
  };
}

function lacksText(value: Json): boolean {
  if (value === "" || value === null) return true;
  if (Array.isArray(value)) return value.some(lacksText);
  return (
    isObject(value) &&
    Object.values(value).some((part) => part !== null && part !== undefined && lacksText(part))
  );
}

interface EntryFormProps {
  draft: DraftEntry;
  isBegun: boolean;
  className?: string;
  children: ReactNode;
}

/** Around each entry, so that one that is finished stays where it is, with the keys in it. */
export function EntryForm({ draft, isBegun, className, children }: EntryFormProps) {
  const form = useForm();
  const entry = useRef<HTMLDivElement>(null);
  const isNew = useRef(isBegun);
  useEffect(() => {
    if (isNew.current) entry.current?.querySelector<HTMLElement>(FIELDS)?.focus();
    isNew.current = false;
  }, []);
  return (
    <FormContext value={isBegun ? draft.form : form}>
      <div ref={entry} className={className} {...whenLeft(() => isBegun && draft.finish())}>
        {children}
      </div>
    </FormContext>
  );
}

const FIELDS = "input:not([type=range]), textarea, [role=combobox]";
