/** Building blocks: what one becomes in a loop, what it is joined with, and what a selection is as a block. */
import { describe, expect, it } from "vitest";
import type { Block } from "@/api/types";
import { beginBlock, joinsOf, openFor, toBlock } from "@/document/blocks";
import { EMPTY_DOCUMENT, type LoopDocument } from "@/document/types";
import { catalog, smallLoop } from "../fixtures/loops";

const PROBE: Block = {
  id: "probe",
  title: "Probe",
  description: "",
  is_own: false,
  tags: ["online"],
  open: { "probe.scores": "what grades" },
  nodes: {
    held_out: { kind: "dataset", source: { type: "task", task: "sorting" } },
    probe: { kind: "evaluate", instead_of: "dataset" },
  },
  edges: ["held_out.rows -> probe.rows"],
  layout: {},
};
const SOLVER: Block = {
  ...PROBE,
  id: "solver",
  open: { "solver.prompts": "problems" },
  nodes: { solver: { kind: "actor" } },
  edges: [],
};
const placed = ({ nodes, open }: Block) => ({
  nodes: nodes as LoopDocument["nodes"],
  edges: [],
  open: Object.keys(open),
});
const dataset = { kind: "dataset", source: { type: "task", task: "sorting" } };
const alone: LoopDocument = { ...EMPTY_DOCUMENT, nodes: { problems: dataset } };

describe("a block that begins", () => {
  it("names a node of the loop where it names a kind", () => {
    const { nodes, edges } = beginBlock(catalog, smallLoop(), PROBE);

    expect(nodes.probe?.instead_of).toBe("problems");
    expect(edges.map(({ from, to }) => [from, to])).toEqual([["held_out.rows", "probe.rows"]]);
  });

  it("leaves out what no node is there for", () => {
    expect(beginBlock(catalog, EMPTY_DOCUMENT, PROBE).nodes.probe).toEqual({ kind: "evaluate" });
  });
});

describe("what a block is joined with", () => {
  it("is the only node that gives what an open port is for", () => {
    expect(joinsOf(catalog, alone, placed(SOLVER), {})).toEqual([
      { from: "problems.rows", to: "solver.prompts" },
    ]);
  });

  it("is nothing where several do, but one of them that is chosen", () => {
    const two = { ...alone, nodes: { problems: dataset, others: dataset } };

    expect(joinsOf(catalog, two, placed(SOLVER), {})).toEqual([]);
    expect(joinsOf(catalog, two, placed(SOLVER), { chosen: ["others"] })).toEqual([
      { from: "others.rows", to: "solver.prompts" },
    ]);
  });

  it("is no dataset that is only measured on", () => {
    const measured: LoopDocument = {
      ...alone,
      nodes: { problems: dataset, probe: { kind: "evaluate" } },
      edges: [{ from: "problems.rows", to: "probe.rows" }],
    };

    expect(joinsOf(catalog, measured, placed(SOLVER), {})).toEqual([]);
  });

  it("is the wire that it was dropped with", () => {
    const joint = { node: "problems", port: "rows", isOutput: true };

    expect(openFor(catalog, alone, SOLVER, joint)).toBe("solver.prompts");
    expect(openFor(catalog, alone, PROBE, joint)).toBeNull();
  });
});

it("a selection is a block with the ports open that were fed, and kinds for nodes that are not in it", () => {
  const loop = smallLoop();
  loop.nodes.probe = { kind: "evaluate", instead_of: "problems" };
  loop.edges.push({ from: "exact.scores", to: "probe.scores" });

  const block = toBlock(catalog, loop, ["actor", "probe"]);

  expect(Object.keys(block.nodes)).toEqual(["actor", "probe"]);
  expect(block.nodes.probe).toEqual({ kind: "evaluate", instead_of: "dataset" });
  expect(Object.keys(block.open ?? {})).toEqual(["actor.prompts", "actor.rewards", "probe.scores"]);
  expect(Object.keys(block.layout ?? {}).every((id) => id in block.nodes)).toBe(true);
});
