/** Nodes are found by name, kind and field; a row is followed from where it comes to what learns from it. */
import { describe, expect, it } from "vitest";
import { findNodes } from "@/document/findNodes";
import { lineageOf } from "@/graph/lineage";
import { catalog, smallLoop } from "../fixtures/loops";
import { presets } from "../fixtures/presets";

const found = (text: string) => findNodes(catalog, smallLoop(), text);

describe("findNodes", () => {
  it("finds by name, then by kind, then by a field and its value", () => {
    // The reference is a snapshot of the actor: its field `model.of` comes last.
    expect(found("actor")).toEqual([
      { id: "actor", where: "Actor" },
      { id: "start", where: "model.of: actor" },
    ]);
    expect(found("DATASET")).toEqual([{ id: "problems", where: "Dataset" }]);
    expect(found("arithmetic")).toEqual([{ id: "problems", where: "source.task: arithmetic" }]);
    expect(found("lr 0.001")).toEqual([{ id: "actor", where: "training.optimizer.lr: 0.001" }]);
  });

  it("finds nothing for nothing", () => {
    expect(found("  ")).toEqual([]);
    expect(found("no such thing")).toEqual([]);
  });
});

describe("lineageOf", () => {
  it("goes from the prompt to the loss, and no further", () => {
    const lineage = lineageOf(catalog, smallLoop(), "actor");

    expect([...lineage.nodes].toSorted()).toEqual(["actor", "exact", "problems", "start"]);
    expect(lineage.sources).toEqual(["problems"]);
    expect(lineage.losses).toEqual(["actor.rewards"]);
  });

  it("leaves out what else is made of its source", () => {
    const lineage = lineageOf(catalog, smallLoop(), "start");

    expect([...lineage.nodes].toSorted()).toEqual(["actor", "problems", "start"]);
    expect([...lineage.edges].toSorted()).toEqual([
      "actor.rollouts->start.rollouts",
      "problems.rows->actor.prompts",
    ]);
  });

  it("of any node of any preset holds the node, and every edge of it joins two of its nodes", () => {
    for (const [, document] of presets) {
      for (const id of Object.keys(document.nodes)) {
        const { nodes, sources } = lineageOf(catalog, document, id);
        expect(nodes.has(id)).toBe(true);
        for (const source of sources) expect(nodes.has(source)).toBe(true);
      }
    }
  });
});
