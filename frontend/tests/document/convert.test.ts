import { describe, expect, it } from "vitest";
import { fromSpec, mendDocument, toSpec } from "@/document/convert";
import { edgeKeys, readEdge } from "@/document/edges";
import type { LoopDocument } from "@/document/types";
import { smallLoop } from "../fixtures/loops";

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
