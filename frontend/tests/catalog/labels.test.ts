import { describe, expect, it } from "vitest";
import { ambiguous, areTogether, type Label, labelsIn } from "@/catalog/labels";
import { entryField, phaseField } from "@/catalog/scheduleSchema";
import { type Field, readSchema } from "@/catalog/schema";
import { catalog } from "../fixtures/loops";

const kinds = Object.entries(catalog.kinds).map(([name, kind]) => [name, kind.schema] as const);
const forms: (readonly [string, Field | null])[] = [
  ...[...kinds, ...Object.entries(catalog.schema)].map(
    ([name, schema]) => [name, readSchema(schema)] as const,
  ),
  ["phase", phaseField(catalog, false)],
  ["group of phases", phaseField(catalog, true)],
  ["trigger", entryField(catalog, "triggers")],
  ["annealing", entryField(catalog, "anneal")],
];

const formOf = (name: string) => forms.find(([one]) => one === name)?.[1] as Field;

/** What each control is called, and whether another that can stand beside it is called the same. */
function calledTheSame(form: Field): string[] {
  const whole = ambiguous(form);
  const called = ({ title, whole: long }: Label) => (whole.has(long) ? long : title);
  const labels = labelsIn(form);
  return labels
    .filter((one, index) =>
      labels
        .slice(index + 1)
        .some((other) => called(one) === called(other) && areTogether(one, other)),
    )
    .map(called);
}

/** Forms that stand below each other. */
const LOOP = ["schedule", "hardware", "run"];

describe("labels", () => {
  it.each(forms)("no two controls of the form of %s are called the same", (_, form) => {
    expect(form?.shape).toBe("object");
    expect(labelsIn(form as Field).length).toBeGreaterThan(1);
    expect(calledTheSame(form as Field)).toEqual([]);
  });

  it("no two controls of the form of the loop are called the same", () => {
    const titles = LOOP.flatMap((part) => [
      ...new Set(labelsIn(formOf(part)).map(({ title }) => title)),
    ]);

    expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
  });

  it("two titles that are the same are found, unless shapes keep them apart", () => {
    const text = { type: "string" };
    const one = (name: string) => ({
      properties: { type: { const: name }, split: text, more: { properties: { split: text } } },
    });
    const form = (name: string) =>
      readSchema({
        properties: { split: { ...text, title: name }, from: { oneOf: [one("a"), one("b")] } },
      });

    expect([...ambiguous(form("Part"))].toSorted()).toEqual(["Split, From", "Split, More, From"]);
    expect([...ambiguous(form("Split"))]).toContain("Split");
  });

  it("what a field is for is said by its title, and not by that it names something", () => {
    const names = Object.keys(catalog.kinds).filter((kind) =>
      labelsIn(formOf(kind)).some(({ title }) => title === "Name"),
    );

    expect(names).toEqual([]);
  });

  it("those of algorithms and optimizers are told apart by words, those of ports by the port", () => {
    const actor = labelsIn(formOf("actor"));
    const titles = new Set(actor.map(({ title }) => title));

    expect(titles).toContain("Algorithm name");
    expect(titles).toContain("Optimizer name");
    expect(ambiguous(formOf("actor"))).toContain("Algorithm name, Pairs, Algorithm");
  });
});
