import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  chartColors,
  IDENTITIES,
  identityColor,
  kindColor,
  nodeColors,
  partColor,
  softColor,
} from "@/lib/colors";
import { catalog } from "../fixtures/loops";

const TOKENS = readFileSync("src/styles/tokens.css", "utf-8");
const nameOf = (color: string) => /--[\w-]+/.exec(color)?.[0] ?? "";

describe("the colour of a node", () => {
  const nodes = {
    problems: { kind: "dataset" },
    actor: { kind: "actor" },
    right: { kind: "reward" },
    short: { kind: "reward" },
    odd: { kind: "odd" },
  };

  it("is a learner's own, of others that of their kind, of an unknown kind grey", () => {
    expect(nodeColors(catalog, nodes, { actor: 2 })).toEqual({
      problems: kindColor(catalog.kinds.dataset),
      actor: "var(--id-2)",
      right: kindColor(catalog.kinds.reward),
      short: kindColor(catalog.kinds.reward),
      odd: "var(--muted)",
    });
    expect(softColor("var(--id-2)")).toBe("var(--id-2-soft)");
  });

  it("is on a chart another for each, and none that a learner has", () => {
    const colors = nodeColors(catalog, nodes, { actor: 1 });

    const shown = chartColors(colors, ["actor", "right", "short"]);

    expect(shown).toEqual({
      actor: "var(--id-1)",
      right: colors.right,
      short: "var(--id-2)",
    });
  });
});

describe("tokens", () => {
  const colors = [
    ...Object.values(catalog.kinds).map(kindColor),
    ...Array.from({ length: IDENTITIES }, (_, place) => identityColor(place + 1)),
  ].map(nameOf);
  const softs = colors.map((name) => `${name}-soft`);
  /** In both themes. A colour can be a second name of another. */
  const valuesOf = (name: string): string[] | undefined => {
    const set = new RegExp(`${name}: ([^;]+);`).exec(TOKENS)?.[1] ?? "";
    const other = /^var\((.+)\)$/.exec(set)?.[1];
    return other ? valuesOf(other) : /^light-dark\((.+), (.+)\)$/.exec(set)?.slice(1);
  };

  it.each([
    ["light", 0],
    ["dark", 1],
  ])("of nodes and parts of memory are there and differ in %s", (_, theme) => {
    const value = (name: string) => valuesOf(name)?.[theme];
    const schema = JSON.parse(readFileSync("openapi.json", "utf-8"));
    const parts: string[] = schema.components.schemas.PartEstimate.properties.part.enum;
    expect(parts.length).toBeGreaterThan(5);

    for (const name of softs) expect(value(name), name).toBeDefined();
    for (const names of [[...new Set(colors)], parts.map((part) => nameOf(partColor(part)))]) {
      const values = names.map(value);
      expect(values).not.toContain(undefined);
      expect(new Set(values).size).toBe(names.length);
    }
  });
});
