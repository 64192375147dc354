/** Connections that make sense by themselves. */
import { describe, expect, it } from "vitest";
import { lacking, naturalEdges } from "@/document/natural";
import { isNatural, naturalness } from "@/document/naturalness";
import { catalog, smallLoop } from "../fixtures/loops";

const dataset = { kind: "dataset", source: { type: "task", task: "sorting" } };

function without(edge: string) {
  const loop = smallLoop();
  loop.edges = loop.edges.filter(({ from, to }) => `${from} ${to}` !== edge);
  return loop;
}

describe("a dataset that is added", () => {
  it("is what the one input reads that lacks rows", () => {
    const loop = without("problems.rows actor.prompts");

    expect(lacking(catalog, loop)).toEqual([{ node: "actor", port: "prompts", type: "Rows" }]);
    expect(naturalEdges(catalog, loop, "more", dataset)).toEqual([
      { from: "more.rows", to: "actor.prompts" },
    ]);
  });

  it("is joined with nothing where nothing lacks rows", () => {
    expect(naturalEdges(catalog, smallLoop(), "more", dataset)).toEqual([]);
  });
});

describe("a connection is natural", () => {
  const isOffered = (from: string, to: string, loop = smallLoop()) =>
    isNatural(naturalness(catalog, loop, { from, to }));

  it("from what scores a learner's texts back to it, as long as that is used for nothing", () => {
    const [from, to] = ["exact.scores", "actor.rewards"] as const;

    expect(isOffered(from, to, without("exact.scores actor.rewards"))).toBe(true);
    expect(isOffered(from, to)).toBe(false);
  });

  it("to an input that needs rows and has none", () => {
    const loop = without("problems.rows actor.prompts");

    expect(isOffered("problems.rows", "actor.prompts", loop)).toBe(true);
    expect(isOffered("problems.rows", "actor.demonstrations", loop)).toBe(false);
    expect(isOffered("problems.rows", "exact.rows", loop)).toBe(false);
  });
});
