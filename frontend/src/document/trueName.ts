/**
 * Keeps the name of a loop true: a loop called `grpo-qwen2.5-7b-8xH100` is called so no longer once it has
 * another machine or model. Words of a name that speak of neither are never touched. Pure, on a draft.
 */
import { isDraft, original } from "immer";
import { isObject } from "@/lib/paths";
import type { LoopDocument } from "./types";

export function keepTrueName(draft: LoopDocument): void {
  const before = isDraft(draft) ? original(draft) : undefined;
  if (!before || before.name !== draft.name) return;
  let { name } = draft;
  const [was, is] = [machineOf(before), machineOf(draft)];
  if (was !== null && was !== is) name = exchanged(name, was, is ?? "");
  const models = modelsOf(draft);
  for (const model of modelsOf(before)) {
    const said = wordsIn(name, model);
    if (said !== null && !models.some((one) => wordsIn(said, one) === said)) {
      name = exchanged(name, said, "");
    }
  }
  if (name !== "") draft.name = name;
}

function machineOf({ rest }: LoopDocument): string | null {
  const preset = isObject(rest.hardware) ? rest.hardware.preset : null;
  return typeof preset === "string" ? preset : null;
}

function modelsOf({ nodes }: LoopDocument): string[] {
  return Object.values(nodes).flatMap(({ model }) => {
    const said = isObject(model) ? (model.path ?? model.architecture) : null;
    return typeof said === "string" ? [said.slice(said.lastIndexOf("/") + 1)] : [];
  });
}

/** As much of the beginning of a model's name as a name says, in its own spelling: `qwen2.5-7b`. */
function wordsIn(name: string, model: string): string | null {
  const parts = model.split("-");
  for (let count = parts.length; count > 0; count -= 1) {
    const words = parts.slice(0, count).join("-");
    const at = /\d/.test(words) ? placeOf(name, words) : -1;
    if (at >= 0) return name.slice(at, at + words.length);
  }
  return null;
}

function placeOf(name: string, words: string): number {
  const at = name.toLowerCase().indexOf(words.toLowerCase());
  const isWhole = (letter: string | undefined) => !/[\p{L}\p{N}.]/u.test(letter ?? "");
  return at >= 0 && isWhole(name[at - 1]) && isWhole(name[at + words.length]) ? at : -1;
}

function exchanged(name: string, words: string, by: string): string {
  const at = placeOf(name, words);
  if (at < 0 || words === "") return name;
  const [head, tail] = [name.slice(0, at), name.slice(at + words.length)];
  if (by !== "") return `${head}${by}${tail}`;
  return head === "" ? tail.replace(/^[\s_-]+/, "") : `${head.replace(/[\s_-]+$/, "")}${tail}`;
}
