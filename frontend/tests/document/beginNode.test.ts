import { expect, it } from "vitest";
import { beginNode } from "@/document/beginNode";
import { EMPTY_DOCUMENT } from "@/document/types";
import { catalog, smallLoop } from "../fixtures/loops";

const kind = (name: string) => {
  const found = catalog.kinds[name];
  if (!found) throw new Error(`no kind ${name}`);
  return found;
};

it("what a template names is a node that is there", () => {
  const probe = beginNode(catalog, smallLoop(), kind("evaluate"));
  const start = beginNode(catalog, smallLoop(), kind("reference"));

  expect(probe.instead_of).toBe("problems");
  expect(start.model).toMatchObject({ of: "actor" });
});

it("of several nodes the one that gives something is taken", () => {
  const loop = smallLoop();
  loop.nodes = { held_out: { kind: "dataset" }, ...loop.nodes };

  expect(beginNode(catalog, loop, kind("evaluate")).instead_of).toBe("problems");
});

it("what cannot be named yet is left out", () => {
  const probe = beginNode(catalog, EMPTY_DOCUMENT, kind("evaluate"));

  expect(probe).toEqual({ ...kind("evaluate").template, instead_of: undefined });
  expect(probe).not.toHaveProperty("instead_of");
});
