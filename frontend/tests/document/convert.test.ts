import { describe, expect, it } from "vitest";
import { fromSpec, mendDocument, toSpec } from "@/document/convert";
import { edgeKeys, readEdge } from "@/document/edges";
import { listedIndex, readIndex } from "@/document/place";
import type { LoopDocument } from "@/document/types";
import { applyChanges } from "@/state/commands/applyChanges";
import { moveNodes, removeItems } from "@/state/commands/nodes";
import { replaceDocument } from "@/state/commands/replaceDocument";
import { catalog, smallLoop } from "../fixtures/loops";

describe("spec and document", () => {
  it("a document comes back from its spec", () => {
    expect(fromSpec(toSpec(smallLoop()))).toEqual(smallLoop());
  });

  it("edges without options are written as text", () => {
    expect(toSpec(smallLoop()).edges).toEqual([
      "problems.rows -> actor.prompts",
      "actor.rollouts -> exact.rollouts",
      "actor.rollouts -> start.rollouts",
      { from: "exact.scores", to: "actor.rewards", id: "outcome", weight: 0.5 },
    ]);
  });

  it("keys of the spec that the page does not know stay", () => {
    const spec = { ...toSpec(smallLoop()), later: { x: 1 } };

    expect(toSpec(fromSpec(spec)).later).toEqual({ x: 1 });
  });

  it("half a document is read as far as it goes", () => {
    const document = fromSpec({
      nodes: { a: { kind: "x" }, b: 3 },
      edges: ["a.x -> b.y", "nonsense", 5],
    });

    expect(document.nodes).toEqual({ a: { kind: "x" } });
    expect(document.edges).toEqual([{ from: "a.x", to: "b.y" }]);
  });

  it("what cannot be read is written back as it was, where it was", () => {
    const spec = {
      coloop: 1,
      name: "half",
      nodes: { a: { kind: "x" }, b: 3, c: null, d: { rows: 1 }, e: { kind: 5 } },
      edges: ["problems.rows > actor.prompts", "a.x -> b.y", 5, { from: "a.x" }, "b.y -> c.z"],
    };

    expect(toSpec(fromSpec(spec))).toEqual(spec);
    expect(toSpec(fromSpec({ coloop: 1, name: "odd", nodes: [1], edges: null }))).toEqual({
      coloop: 1,
      name: "odd",
      nodes: [1],
      edges: null,
    });
  });

  it("what cannot be read keeps its place while others come and go", () => {
    const before = fromSpec({ edges: ["bad", "a.x -> b.y", "worse", "b.y -> c.z"] });

    const after = removeItems(before, { nodes: [], edges: ["a.x->b.y"] });

    expect(toSpec(after).edges).toEqual(["bad", "b.y -> c.z", "worse"]);
    expect(listedIndex(before, 1)).toBe(3);
    expect(listedIndex(after, 0)).toBe(1);
    expect([0, 1, 2, 3].map((at) => readIndex(before, at))).toEqual([-1, 0, -1, 1]);
    expect([0, 1, 2].map((at) => readIndex(after, at))).toEqual([-1, 0, -1]);
  });

  it("a path of the server counts the edges that cannot be read", () => {
    const loop = fromSpec({ edges: ["bad", "a.x -> b.y"] });

    const changed = applyChanges(loop, {
      catalog,
      changes: [
        { op: "set", path: "edges.1", value: "a.x -> c.z" },
        { op: "remove_edge", path: "edges.0" },
      ],
    });

    expect(toSpec(changed).edges).toEqual(["bad", "a.x -> c.z"]);
  });

  it("another version brings what cannot be read along", () => {
    const half = fromSpec({ nodes: { b: 3 }, edges: ["bad"] });

    const replaced = replaceDocument(smallLoop(), { document: half });

    expect(replaced.unread).toEqual(half.unread);
    expect(replaceDocument(half, { document: smallLoop() })).not.toHaveProperty("unread");
  });

  it("a kept document with edges as text opens", () => {
    const kept = smallLoop() as unknown as { edges: unknown[] };
    kept.edges[1] = "actor.rollouts -> exact.rollouts";
    kept.edges.push("nonsense");

    const mended = mendDocument(kept as unknown as LoopDocument);

    expect(mended).toEqual(smallLoop());
    expect(edgeKeys(mended.edges)).toHaveLength(4);
  });

  it("an edge is read from text, from keys, and from port references", () => {
    const edge = { from: "a.x", to: "b.y" };

    expect(readEdge("a.x -> b.y")).toEqual(edge);
    expect(readEdge("a.x -> b.y -> c.z")).toBeNull();
    expect(readEdge({ from: "a.x", to: "b.y", weight: null })).toEqual(edge);
    expect(
      readEdge({ source: { node: "a", port: "x" }, target: { node: "b", port: "y" } }),
    ).toEqual(edge);
  });

  it("two edges between the same ports have different keys", () => {
    const edge = { from: "a.x", to: "b.y" };

    expect(edgeKeys([edge, edge])).toEqual(["a.x->b.y", "a.x->b.y#1"]);
  });
});

describe("what a layout holds besides places", () => {
  const layout = {
    actor: [10, 20],
    exact: [30, 40, 200, 100],
    frames: [{ title: "rewards", box: [0, 0, 5, 5] }],
    notes: { first: { text: "look here", at: [1, 2] } },
  };
  const spec = {
    coloop: 1,
    name: "framed",
    nodes: { actor: { kind: "a" }, exact: { kind: "b" } },
    edges: [],
    layout,
  };

  it("stays as it is", () => {
    expect(toSpec(fromSpec(spec)).layout).toEqual(layout);
  });

  it("stays when boxes move and go", () => {
    const moved = moveNodes(fromSpec(spec), { positions: { actor: [11, 21], exact: [31, 41] } });

    expect(toSpec(moved).layout).toEqual({
      ...layout,
      actor: [11, 21],
      exact: [31, 41, 200, 100],
    });
    const { exact: _, ...rest } = layout;
    const removed = removeItems(fromSpec(spec), { nodes: ["exact"], edges: [] });
    expect(toSpec(removed).layout).toEqual(rest);
  });
});
