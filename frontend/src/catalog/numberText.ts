/** Numbers as they are typed: `8`, `0.5`, `3e-4`. Pure. */
import type { Field } from "./schema";

type NumberField = Extract<Field, { shape: "number" }>;

/** What is wrong with a typed number, in words; null where it reads, and where nothing is typed. */
export function numberProblem(field: NumberField, text: string): string | null {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const number = Number(trimmed);
  if (Number.isFinite(number) && !(field.isWhole && !Number.isInteger(number))) return null;
  return field.isWhole
    ? "Expected a whole number, such as 8."
    : "Expected a number, such as 0.5 or 3e-4.";
}

export function readNumber(field: NumberField, text: string): number | undefined {
  const trimmed = text.trim();
  return trimmed === "" || numberProblem(field, text) !== null ? undefined : Number(trimmed);
}
