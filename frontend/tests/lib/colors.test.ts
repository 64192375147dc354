import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createColorMemory, kindColor, nodeColors, partColor } from "@/lib/colors";
import { catalog, smallLoop } from "../fixtures/loops";

const TOKENS = readFileSync("src/styles/tokens.css", "utf-8");
const [LIGHT = "", DARK = ""] = TOKENS.split(':root[data-theme="dark"]');
const nameOf = (color: string) => /--[\w-]+/.exec(color)?.[0] ?? "";

describe("the colour of a node", () => {
  it("is its kind's for the first of a group, and one that nobody has for the next", () => {
    const { nodes } = smallLoop();

    const colors = nodeColors(catalog, nodes);

    expect(colors.problems).toBe(kindColor(catalog.kinds.dataset));
    expect(colors.actor).toBe(kindColor(catalog.kinds.actor));
    expect(colors.start).toBe("var(--node-1)");
    expect(new Set(Object.values(colors)).size).toBe(Object.keys(nodes).length);
  });

  it("stays when nodes are added behind it or renamed", () => {
    const { nodes } = smallLoop();
    const before = nodeColors(catalog, nodes);

    const after = nodeColors(catalog, { ...nodes, more: { kind: "reward" } });

    expect(after).toMatchObject(before);
    const renamed = Object.fromEntries(Object.entries(nodes).map(([id, node]) => [`${id}2`, node]));
    expect(Object.values(nodeColors(catalog, renamed))).toEqual(Object.values(before));
  });

  it("stays for the session when one before it goes and comes back, and under a new name", () => {
    const nodes: Record<string, { kind: string }> = {
      a: { kind: "reward" },
      b: { kind: "reward" },
      c: { kind: "reward" },
    };
    const memory = createColorMemory();
    const first = nodeColors(catalog, nodes, memory);
    const { a, b, c } = first;

    const { a: _, ...without } = nodes;
    expect(nodeColors(catalog, without, memory)).toEqual({ b, c });
    expect(nodeColors(catalog, nodes, memory)).toEqual(first);
    const renamed = { a: nodes.a, second: nodes.b, c: nodes.c } as typeof nodes;
    expect(nodeColors(catalog, renamed, memory)).toEqual({ a, second: b, c });

    const next = { ...without, d: { kind: "reward" } };
    nodeColors(catalog, without, memory);
    expect(nodeColors(catalog, next, memory)).toEqual({ b, c, d: a });
    const back = nodeColors(catalog, { ...nodes, d: { kind: "reward" } }, memory);
    expect(back).toMatchObject({ b, c });
    expect(new Set(Object.values(back)).size).toBe(4);
  });

  it("of an unknown kind is grey", () => {
    expect(nodeColors(catalog, { odd: { kind: "odd" } })).toEqual({ odd: "var(--muted)" });
  });
});

describe("tokens", () => {
  const colors = [
    ...Object.values(catalog.kinds).map(kindColor),
    ...Array.from({ length: 6 }, (_, place) => `var(--node-${place + 1})`),
  ].map(nameOf);
  const value = (theme: string, name: string) => new RegExp(`${name}: ([^;]+);`).exec(theme)?.[1];

  it.each([
    ["light", LIGHT],
    ["dark", DARK],
  ])("of nodes and parts of memory are there and differ in %s", (_, theme) => {
    const schema = JSON.parse(readFileSync("openapi.json", "utf-8"));
    const parts: string[] = schema.components.schemas.PartEstimate.properties.part.enum;
    expect(parts.length).toBeGreaterThan(5);

    for (const names of [[...new Set(colors)], parts.map((part) => nameOf(partColor(part)))]) {
      const values = names.map((name) => value(theme, name));
      expect(values).not.toContain(undefined);
      expect(new Set(values).size).toBe(names.length);
    }
  });
});
