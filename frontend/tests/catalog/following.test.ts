/** What other settings of a node become when one of them is set. */
import { describe, expect, it } from "vitest";
import type { JsonObject, KindInfo } from "@/api/types";
import { following, type Laid } from "@/catalog/following";
import { catalog } from "../fixtures/loops";

const verifier = catalog.kinds.verifier as KindInfo;

function changed(node: JsonObject, change: JsonObject, laid: Laid = new Map()): JsonObject {
  const after = { ...node, ...change };
  return { ...after, ...following(verifier, node, after, laid) };
}

describe("a judge", () => {
  const rule = { kind: "verifier", method: "rule" };

  it("begins with a model, a prompt and a verdict once it writes", () => {
    const judge = changed(rule, { method: "generative" });

    expect(Object.keys(judge).sort()).toEqual(
      ["kind", "method", "model", "read", "rollout", "template"].sort(),
    );
  });

  it("keeps what is set", () => {
    const read = { number: "(\\d+)" };

    expect(changed({ ...rule, read }, { method: "generative" }).read).toEqual(read);
  });

  it("loses what no longer belongs to it, and has it again when it does", () => {
    const laid: Laid = new Map();
    const template = { text: "Is {{ completion }} right?" };
    const judge = changed({ ...changed(rule, { method: "generative" }), template }, {}, laid);

    const plain = changed(judge, { method: "rule" }, laid);
    expect(plain.template).toBeUndefined();
    expect(plain.model).toBeUndefined();

    expect(changed(plain, { method: "generative" }, laid)).toEqual(judge);
  });

  it("has no weights of its own once a model elsewhere writes", () => {
    const judge = changed(rule, { method: "generative" });

    expect(changed(judge, { rollout: { engine: "chat" } }).model).toBeUndefined();
  });
});

it.each(Object.values(catalog.kinds).map((kind) => [kind.kind, kind] as const))(
  "what a %s begins with belongs to it",
  (_, kind) => {
    const odd = Object.entries(kind.begins_with).flatMap(([path, values]) =>
      Object.entries(values).flatMap(([value, begun]) => {
        const node = path.split(".").reduceRight<unknown>((all, key) => ({ [key]: all }), value);
        const all = { ...kind.template, ...(node as JsonObject) };
        const followed = following(kind, kind.template, all, new Map());
        return Object.keys(begun as JsonObject).filter((name) => followed[name] === undefined);
      }),
    );

    expect(odd).toEqual([]);
  },
);
