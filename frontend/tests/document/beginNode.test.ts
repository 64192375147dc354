import { expect, it } from "vitest";
import { modeNamed } from "@/catalog/modes";
import { beginNode } from "@/document/beginNode";
import { EMPTY_DOCUMENT } from "@/document/types";
import { catalog, smallLoop } from "../fixtures/loops";

const kind = (name: string) => {
  const found = catalog.kinds[name];
  if (!found) throw new Error(`no kind ${name}`);
  return found;
};

const online = modeNamed(catalog, "online");

it("what a template names is a node that is there", () => {
  const probe = beginNode(catalog, smallLoop(), kind("evaluate"), online);
  const start = beginNode(catalog, smallLoop(), kind("reference"), online);

  expect(probe.instead_of).toBe("problems");
  expect(start.model).toMatchObject({ of: "actor" });
});

it("of several nodes the one that gives something is taken", () => {
  const loop = smallLoop();
  loop.nodes = { held_out: { kind: "dataset" }, ...loop.nodes };

  expect(beginNode(catalog, loop, kind("evaluate"), online).instead_of).toBe("problems");
});

it("what cannot be named yet is left out", () => {
  const probe = beginNode(catalog, EMPTY_DOCUMENT, kind("evaluate"), online);

  expect(probe).toEqual({ ...kind("evaluate").template, instead_of: undefined });
  expect(probe).not.toHaveProperty("instead_of");
});

it.each([
  ["online", { rewards: { name: "grpo" } }],
  ["offline", { pairs: { name: "dpo" } }],
  ["reward_modeling", { demonstrations: { name: "sft" } }],
])("an actor of the mode %s begins with what it learns by there", (mode, algorithm) => {
  const actor = beginNode(catalog, EMPTY_DOCUMENT, kind("actor"), modeNamed(catalog, mode));

  expect(actor.algorithm).toEqual(algorithm);
});

it("a port that a template names is one of the node that is there", () => {
  const offline = modeNamed(catalog, "offline");
  const loop = smallLoop();
  loop.nodes = { policy: { kind: "actor" } };

  expect(beginNode(catalog, loop, kind("evaluate"), offline).of).toEqual(["policy.pairs"]);
  expect(beginNode(catalog, EMPTY_DOCUMENT, kind("evaluate"), offline)).not.toHaveProperty("of");
});
