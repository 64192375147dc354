import { describe, expect, it } from "vitest";
import type { KindInfo } from "@/api/types";
import { edgeText } from "@/document/edgeText";
import { fittingPort } from "@/document/fittingPort";
import { freePlace } from "@/document/freePlace";
import { NODE_WIDTH, nodeHeight } from "@/document/geometry";
import { arrange, forwardEdges, placeNodes } from "@/document/layout";
import type { LoopDocument } from "@/document/types";
import { edgeLine } from "@/features/canvas/edgePath";
import { isBackward, planLanes, type RouteBox } from "@/features/canvas/lanes";
import { routeEdges } from "@/features/canvas/routes";
import { summarise } from "@/features/canvas/summary";
import { groupKinds, searchGroups } from "@/features/palette/groups";
import { catalog, smallLoop } from "../fixtures/loops";

const box = (id: string, x: number, y: number, height = 100): RouteBox => ({ id, x, y, height });

function lane(boxes: RouteBox[], ...ways: [string, string][]) {
  const at = (id: string) => boxes.find((one) => one.id === id) as RouteBox;
  const planned = planLanes(
    boxes,
    ways.map(([from, to]) => ({ key: `${from} ${to}`, from: at(from), to: at(to) })),
  );
  return ways.map(([from, to]) => planned.get(`${from} ${to}`));
}

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
    loop.layout = { problems: [0, 0], actor: [300, 0], start: [600, 0], exact: [600, 300] };

    expect(placeNodes(catalog, loop, false)).toBe(loop.layout);
  });

  it("boxes that would stand on each other are moved apart, the upper one stays", () => {
    const loop = smallLoop();
    loop.layout = { problems: [0, 0], actor: [300, 0], start: [600, 0], exact: [600, 40] };

    const places = placeNodes(catalog, loop, true);

    expect(places.start).toEqual([600, 0]);
    const [, y] = places.exact ?? [];
    expect(y).toBeGreaterThanOrEqual(nodeHeight(catalog, loop, "start", true));
  });

  it("a long chain goes on in a new row", () => {
    const names = Array.from({ length: 9 }, (_, index) => `step_${index}`);
    const loop = smallLoop();
    loop.nodes = Object.fromEntries(names.map((name) => [name, { kind: "template" }]));
    loop.edges = names.slice(1).map((name, index) => ({
      from: `${names[index]}.rows`,
      to: `${name}.rows`,
    }));
    loop.layout = {};

    const places = Object.values(arrange(catalog, loop, false));

    const width = Math.max(...places.map(([x]) => x)) + NODE_WIDTH;
    expect(width).toBeLessThan((NODE_WIDTH + 72) * 6);
    expect(new Set(places.map(([, y]) => y)).size).toBeGreaterThan(1);
  });

  it("nodes that are added at one point cover neither each other nor what is there", () => {
    let loop = smallLoop();
    const sizeOf = (id: string) => nodeHeight(catalog, loop, id, false);
    for (const kind of Object.values(catalog.kinds)) {
      const place = freePlace(catalog, loop, kind, { x: 320, y: 8 });
      loop = {
        ...loop,
        nodes: { ...loop.nodes, [`new_${kind.kind}`]: { kind: kind.kind } },
        layout: { ...loop.layout, [`new_${kind.kind}`]: [place.x, place.y] },
      };
    }
    const boxes = Object.entries(loop.layout);
    const covered = boxes.flatMap(([a, [ax, ay]]) =>
      boxes
        .filter(
          ([b, [bx, by]]) =>
            a < b && Math.abs(ax - bx) < NODE_WIDTH && ay < by + sizeOf(b) && by < ay + sizeOf(a),
        )
        .map(([b]) => `${a} ${b}`),
    );

    expect(boxes.length).toBeGreaterThan(12);
    expect(covered).toEqual([]);
  });

  it("nodes that are added on one spot spread to the sides before they pile up", () => {
    const [kind] = Object.values(catalog.kinds);
    let loop: LoopDocument = { ...smallLoop(), nodes: {}, edges: [], layout: {} };
    for (const id of ["a", "b", "c", "d", "e", "f", "g"]) {
      const { x, y } = freePlace(catalog, loop, kind as KindInfo, { x: 0, y: 0 });
      loop = {
        ...loop,
        nodes: { ...loop.nodes, [id]: { kind: (kind as KindInfo).kind } },
        layout: { ...loop.layout, [id]: [x, y] },
      };
    }

    const [across, down] = [0, 1].map((side) => {
      const at = Object.values(loop.layout).map((place) => place[side as 0 | 1]);
      return Math.max(...at) - Math.min(...at);
    });
    expect(loop.layout.b?.[0]).toBeGreaterThan(NODE_WIDTH);
    expect(across).toBeGreaterThan(down ?? 0);
  });

  it("a node is put where it is wanted if there is room", () => {
    const [kind] = Object.values(catalog.kinds);

    expect(kind && freePlace(catalog, smallLoop(), kind, { x: 1600, y: 800 })).toEqual({
      x: 1600,
      y: 800,
    });
  });
});

describe("edges", () => {
  it("a forward edge has no lane", () => {
    expect(isBackward(box("a", 0, 0), box("b", 400, 0))).toBe(false);
    expect(isBackward(box("b", 400, 0), box("a", 0, 0))).toBe(true);
  });

  it("a backward edge runs below everything in between", () => {
    const all = [box("a", 800, 0), box("b", 0, 0), box("tall", 400, 50, 300), box("far", 400, 900)];

    expect(lane(all, ["a", "b"])[0]?.y).toBe(50 + 300 + 24);
  });

  it("between two rows it runs in the free stripe", () => {
    const all = [box("a", 800, 0), box("b", 0, 200)];

    expect(lane(all, ["a", "b"])[0]?.y).toBe(100 + 24);
  });

  it("each backward edge has a track and a way out of its own", () => {
    const all = [box("a", 800, 0), box("b", 0, 0), box("c", 400, 0)];

    const [long, short, other] = lane(all, ["a", "b"], ["a", "c"], ["c", "b"]);

    const tracks = [long, short, other].map((one) => one?.y ?? 0);
    expect(Math.abs((tracks[0] ?? 0) - (tracks[1] ?? 0))).toBeGreaterThanOrEqual(24);
    expect(long?.out).not.toBe(short?.out);
    expect(long?.into).not.toBe(other?.into);
  });

  it("a lane turns corners, a forward line does not", () => {
    const ends = { sourceX: 400, sourceY: 0, targetX: 0, targetY: 0 };

    expect(edgeLine(ends, { y: 200, out: 24, into: 24 }).path).toContain("Q");
    expect(edgeLine({ ...ends, targetX: 800 }, null).path).toContain("C");
  });

  it("two edges between the same two ports swing apart", () => {
    const boxes = [box("a", 0, 0), box("b", 400, 0)];
    const edge = { source: "a", target: "b", sourceRow: 0, targetRow: 0, characters: 4 };

    const routes = routeEdges(
      boxes,
      [
        { ...edge, key: "1" },
        { ...edge, key: "2" },
      ],
      1,
    );

    expect(routes.get("1")?.bend).not.toBe(routes.get("2")?.bend);
    expect(routes.get("1")?.label).not.toEqual(routes.get("2")?.label);
  });

  it("a label without room waits until its edge is pointed at", () => {
    const boxes = [box("a", 0, 0, 700), box("b", 230, 0, 700)];
    const edge = { source: "a", target: "b", sourceRow: 10, targetRow: 10 };

    const routes = routeEdges(boxes, [{ ...edge, key: "1", characters: 30 }], 1);

    expect(routes.get("1")?.label).toBeNull();
  });

  it("options are said in a few words, the name first", () => {
    expect(
      edgeText(catalog, { from: "a.x", to: "b.y", weight: 0.8, id: "outcome", rounds: 2 }),
    ).toBe("outcome · × 0.8 · 2 rounds");
    expect(edgeText(catalog, { from: "a.x", to: "b.y" })).toBe("");
  });
});

describe("nodes", () => {
  it("a summary names what was chosen", () => {
    const kind = { summary: ["model.architecture", "model.type", "keep.*.rule", "of.*", "n"] };

    expect(summarise(kind, { model: { type: "scratch", architecture: "tiny" }, n: 3 })).toBe(
      "tiny · scratch",
    );
    expect(summarise(kind, { keep: [{ rule: "a" }, { rule: "b" }], of: ["c", "d"] })).toBe(
      "a · b · c",
    );
    expect(summarise(kind, { model: { type: "copy", architecture: "" }, of: [""] })).toBe("copy");
    expect(summarise(undefined, { n: "x" })).toBe("");
    expect(summarise(catalog.kinds.actor, smallLoop().nodes.actor ?? {})).toBe("tiny-qwen3");
  });

  it("the palette has every kind, in the catalog's groups", () => {
    const groups = groupKinds(catalog);

    expect(groups.flatMap((group) => group.kinds.map((kind) => kind.kind)).toSorted()).toEqual(
      Object.keys(catalog.kinds).toSorted(),
    );
    expect(groups[0]?.name).toBe(catalog.groups?.[0]?.name);
  });

  it.each([
    ["reward", "reward"],
    ["REWARD", "reward"],
    ["probe", "evaluate"],
    ["held-out", "evaluate"],
    ["judge", "verifier reward"],
    ["grpo", "actor"],
    ["kl", "reference"],
    ["exact_match", "reward"],
    ["countdown", "dataset"],
    ["value", "critic"],
    ["reward model", "reward"],
  ])("a search for %s finds %s first", (search, kinds) => {
    const [best] = searchGroups(groupKinds(catalog), search);

    expect(kinds.split(" ")).toContain(best?.kinds[0]?.kind);
  });

  it("a search for what nothing is called finds nothing", () => {
    expect(searchGroups(groupKinds(catalog), "no such words")).toEqual([]);
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
