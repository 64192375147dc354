/**
 * What the controls of a form are called where the eye does not help. A title that stands more than once in a
 * form is told with the groups around it, the inner one first: "Weight, Rewards, Algorithm". Pure.
 */
import { remember } from "@/lib/remember";
import type { Field } from "./schema";
import { isFlat, isSimple } from "./shapes";

export interface Label {
  title: string;
  whole: string;
  /** Which shape each union around it has: those of one union never stand together. */
  shapes: ReadonlyMap<string, string>;
}

const DEEPEST = 8;

/** Whole labels of a form whose titles do not tell them apart. */
export const ambiguous = remember((form: Field): ReadonlySet<string> => {
  const byTitle = new Map<string, Label[]>();
  for (const label of labelsIn(form)) {
    byTitle.set(label.title, [...(byTitle.get(label.title) ?? []), label]);
  }
  const wholes = [...byTitle.values()].flatMap((labels) =>
    labels
      .filter((one) => labels.some((other) => one.whole !== other.whole && areTogether(one, other)))
      .map(({ whole }) => whole),
  );
  return new Set(wholes);
});

/** What stands for all of its group is called as the group is. */
export function wholeLabel(title: string, groups: readonly string[]): string {
  const around = groups.toReversed();
  return [title, ...(around[0] === title ? around.slice(1) : around)].join(", ");
}

export function areTogether(one: Label, other: Label): boolean {
  return [...one.shapes].every(([union, shape]) => (other.shapes.get(union) ?? shape) === shape);
}

/** Every control and group of a form. Entries of lists and mappings, which may be many, are told whole anyway. */
export function labelsIn(form: Field): Label[] {
  const labels: Label[] = [];
  type Around = { groups: readonly string[]; shapes: ReadonlyMap<string, string> };

  const note = (title: string, { groups, shapes }: Around) => {
    labels.push({ title, whole: wholeLabel(title, groups), shapes });
  };
  const properties = (field: Field, around: Around) => {
    if (field.shape !== "object") return;
    for (const { field: own } of field.properties()) {
      if (own.shape === "constant") continue;
      note(own.title, around);
      visit(own, own.title, around);
    }
  };
  const inside = (field: Field, title: string, around: Around, tags: number) => {
    if (field.shape === "object") properties(field, around);
    else if (field.shape === "tagged" && tags > 0) {
      note(field.tagTitle, around);
      variants(field, around, tags + 1);
    } else {
      if (title !== around.groups.at(-1)) note(title, around);
      visit(field, title, around);
    }
  };
  const variants = (field: Field, { groups, shapes }: Around, tags: number) => {
    if (field.shape !== "tagged" && field.shape !== "variants") return;
    for (const { key, title, field: own } of field.variants) {
      const chosen = new Map(shapes).set(`${groups.join("/")}/${tags}`, key);
      const called = isSimple(own) ? groups.at(-1) : title;
      inside(own, own.title || (called ?? ""), { groups, shapes: chosen }, tags);
    }
  };
  const visit = (field: Field, title: string, around: Around) => {
    if (around.groups.length > DEEPEST || isSimple(field)) return;
    const within = { groups: [...around.groups, title], shapes: around.shapes };
    if (field.shape === "object") properties(field, within);
    else if (!isFlat(field)) variants(field, within, field.shape === "tagged" ? 1 : 0);
  };
  properties(form, { groups: [], shapes: new Map() });
  return labels;
}
