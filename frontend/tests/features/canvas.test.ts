import type { Node } from "@xyflow/react";
import { describe, expect, it } from "vitest";
import { edgeText } from "@/document/edgeText";
import { fittingPort } from "@/document/fittingPort";
import { freePlace } from "@/document/freePlace";
import { NODE_WIDTH } from "@/document/geometry";
import { arrange, forwardEdges, placeNodes } from "@/document/layout";
import { edgeLine } from "@/features/canvas/edgePath";
import { createLanes } from "@/features/canvas/lane";
import { summarise } from "@/features/canvas/summary";
import { groupKinds, matchesSearch } from "@/features/palette/groups";
import { catalog, smallLoop } from "../fixtures/loops";

const box = (id: string, x: number, y: number, height = 100): Node => ({
  id,
  position: { x, y },
  height,
  data: {},
});

describe("layout", () => {
  it("data flows from left to right", () => {
    const places = arrange(catalog, smallLoop(), false);

    const x = (id: string) => places[id]?.[0] ?? 0;
    expect(x("problems")).toBeLessThan(x("actor"));
    expect(x("actor")).toBeLessThan(x("exact"));
    expect(x("exact")).toBe(x("start"));
  });

  it("no two boxes overlap", () => {
    const places = Object.values(arrange(catalog, smallLoop(), false));

    for (const [index, [x, y]] of places.entries()) {
      for (const [otherX, otherY] of places.slice(index + 1)) {
        expect(Math.abs(x - otherX) >= NODE_WIDTH || Math.abs(y - otherY) >= 80).toBe(true);
      }
    }
  });

  it("edges that carry learning back do not count", () => {
    const edges = forwardEdges(catalog, smallLoop()).map((edge) => edge.to);

    expect(edges).not.toContain("actor.rewards");
    expect(edges).toContain("actor.prompts");
  });

  it("a loop that places its nodes is drawn as it is", () => {
    const loop = smallLoop();
    loop.layout = { problems: [0, 0], actor: [1, 1], start: [2, 2], exact: [3, 3] };

    expect(placeNodes(catalog, loop, false)).toBe(loop.layout);
  });

  it("a new node is not put on top of another", () => {
    const place = freePlace(smallLoop(), { x: 320, y: 0 });

    expect([place.x, place.y]).not.toEqual([320, 0]);
  });
});

describe("edges", () => {
  it("a forward edge has no lane", () => {
    expect(createLanes([box("a", 0, 0), box("b", 400, 0)]).below("a", "b")).toBeNull();
  });

  it("a backward edge runs below everything in between", () => {
    const all = [box("a", 800, 0), box("b", 0, 0), box("tall", 400, 50, 300), box("far", 400, 900)];

    expect(createLanes(all).below("a", "b")).toBe(50 + 300 + 22);
  });

  it("a lane turns corners, a forward line does not", () => {
    const ends = { sourceX: 400, sourceY: 0, targetX: 0, targetY: 0 };

    expect(edgeLine(ends, 200, 0).path).toContain("Q");
    expect(edgeLine({ ...ends, targetX: 800 }, null, 0).path).toContain("C");
  });

  it("options are said in a few words, the name first", () => {
    expect(edgeText({ from: "a.x", to: "b.y", weight: 0.8, id: "outcome", rounds: 2 })).toBe(
      "outcome · × 0.8 · 2 rounds",
    );
    expect(edgeText({ from: "a.x", to: "b.y" })).toBe("");
  });
});

describe("nodes", () => {
  it("a summary names what was chosen", () => {
    expect(summarise({ kind: "k", model: { type: "scratch", architecture: "tiny" }, n: 3 })).toBe(
      "scratch · tiny",
    );
  });

  it("the palette has every kind, in the catalog's groups", () => {
    const groups = groupKinds(catalog);

    expect(groups.flatMap((group) => group.kinds.map((kind) => kind.kind)).toSorted()).toEqual(
      Object.keys(catalog.kinds).toSorted(),
    );
    expect(groups[0]?.name).toBe(catalog.groups?.[0]?.name);
  });

  it("a search looks at all words", () => {
    const [first] = Object.values(catalog.kinds);

    expect(first && matchesSearch(first, first.title.toUpperCase())).toBe(true);
    expect(first && matchesSearch(first, "no such words")).toBe(false);
  });

  it("from a port only kinds that fit are offered", () => {
    const loop = smallLoop();
    const from = { node: "start", port: "log_probs", isOutput: true };
    const fitting = Object.values(catalog.kinds).filter((kind) =>
      fittingPort(catalog, loop, from, kind),
    );

    expect(fitting.map((kind) => kind.kind).toSorted()).toEqual(["actor", "verifier"]);
  });

  it("from an input that takes no more nothing is offered", () => {
    const loop = smallLoop();
    const from = { node: "actor", port: "reference", isOutput: false };
    const offered = () =>
      Object.values(catalog.kinds)
        .filter((kind) => fittingPort(catalog, loop, from, kind))
        .map((kind) => kind.kind);
    expect(offered()).toContain("reference");

    loop.edges.push({ from: "start.log_probs", to: "actor.reference" });

    expect(offered()).toEqual([]);
  });
});
