/**
 * A command is a pure function `(document, arguments) → document`, written as a recipe on a draft.
 * The history needs the recipe to learn the patches; everybody else calls the command.
 */
import { type Draft, produce } from "immer";
import type { LoopDocument } from "@/document/types";

export type Recipe<A> = (draft: Draft<LoopDocument>, args: A) => void;

export interface Command<A> {
  (document: LoopDocument, args: A): LoopDocument;
  readonly label: string;
  readonly recipe: Recipe<A>;
}

export function defineCommand<A>(label: string, recipe: Recipe<A>): Command<A> {
  const run = (document: LoopDocument, args: A) =>
    produce(document, (draft) => {
      recipe(draft, args);
    });
  return Object.assign(run, { label, recipe });
}
