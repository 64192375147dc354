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
const [LIGHT = "", DARK = ""] = TOKENS.split(':root[data-theme="dark"]');
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
  const set = (theme: string, name: string) => new RegExp(`${name}: ([^;]+);`).exec(theme)?.[1];
  // A second name for a colour stands in the base.
  const value = (theme: string, name: string) =>
    set(theme, name) ?? set(theme, nameOf(set(LIGHT, name) ?? ""));

  it.each([
    ["light", LIGHT],
    ["dark", DARK],
  ])("of nodes and parts of memory are there and differ in %s", (_, theme) => {
    const schema = JSON.parse(readFileSync("openapi.json", "utf-8"));
    const parts: string[] = schema.components.schemas.PartEstimate.properties.part.enum;
    expect(parts.length).toBeGreaterThan(5);

    for (const name of softs) expect(value(theme, name), name).toBeDefined();
    for (const names of [[...new Set(colors)], parts.map((part) => nameOf(partColor(part)))]) {
      const values = names.map((name) => value(theme, name));
      expect(values).not.toContain(undefined);
      expect(new Set(values).size).toBe(names.length);
    }
  });
});
