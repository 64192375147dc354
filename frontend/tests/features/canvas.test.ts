import { describe, expect, it } from "vitest";
import type { JsonObject, KindInfo } from "@/api/types";
import { fittingPort } from "@/document/canConnect";
import type { LoopDocument } from "@/document/types";
import { groupKinds, searchGroups } from "@/features/palette/groups";
import { summaryValues } from "@/graph/cardValues";
import { edgeText } from "@/graph/edgeKinds";
import { freePlace, placeOnward } from "@/graph/freePlace";
import { MIN_WIDTH, NODE_WIDTH, nodeSize } from "@/graph/geometry";
import { arrange, forwardEdges, placeNodes } from "@/graph/layout";
import { type RouteEdge, routeEdges } from "@/graph/routes";
import { areaOf, type Box, crosses } from "@/graph/shapes";
import { catalog, smallLoop } from "../fixtures/loops";

const box = (id: string, x: number, y: number, height = 100): Box => ({
  id,
  x,
  y,
  width: 160,
  height,
});

const edge = (source: string, target: string, change: Partial<RouteEdge> = {}): RouteEdge => ({
  key: `${source} ${target}`,
  source,
  target,
  sourcePort: "out",
  targetPort: "in",
  kind: "data",
  follower: null,
  sourceTop: 58,
  targetTop: 58,
  label: 0,
  ...change,
});

describe("layout", () => {
  it("data flows from left to right", () => {
    const places = arrange(catalog, smallLoop());

    const x = (id: string) => places[id]?.[0] ?? 0;
    expect(x("problems")).toBeLessThan(x("actor"));
    expect(x("actor")).toBeLessThan(x("exact"));
    expect(x("actor")).toBeLessThan(x("start"));
  });

  it("no two boxes overlap", () => {
    const places = Object.values(arrange(catalog, smallLoop()));

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

    expect(placeNodes(catalog, loop)).toBe(loop.layout);
  });

  it("boxes that would stand on each other are moved apart, the upper one stays", () => {
    const loop = smallLoop();
    loop.layout = { problems: [0, 0], actor: [300, 0], start: [600, 0], exact: [600, 40] };

    const places = placeNodes(catalog, loop);

    expect(places.start).toEqual([600, 0]);
    const [, y] = places.exact ?? [];
    expect(y).toBeGreaterThanOrEqual(nodeSize(catalog, loop, "start").height);
  });

  it("two ranks stand at least 60 apart", () => {
    const loop = smallLoop();
    const places = arrange(catalog, loop);
    const right = (id: string) => (places[id]?.[0] ?? 0) + nodeSize(catalog, loop, id).width;

    expect((places.actor?.[0] ?? 0) - right("problems")).toBeGreaterThanOrEqual(60);
    expect((places.exact?.[0] ?? 0) - right("actor")).toBeGreaterThanOrEqual(60);
  });

  it("a node that serves one other only docks below it", () => {
    const loop = smallLoop();
    loop.edges.push({ from: "start.log_probs", to: "actor.reference" });

    const places = arrange(catalog, loop);

    expect(places.start?.[0]).toBe(places.actor?.[0]);
    expect(places.start?.[1]).toBeGreaterThan(places.actor?.[1] ?? 0);
  });

  it("nodes that are added at one point cover neither each other nor what is there", () => {
    let loop = smallLoop();
    const sizeOf = (id: string) => nodeSize(catalog, loop, id);
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
        .filter(([b, [bx, by]]) => {
          const [own, other] = [sizeOf(a), sizeOf(b)];
          const isBeside = ax >= bx + other.width || bx >= ax + own.width;
          return a < b && !isBeside && ay < by + other.height && by < ay + own.height;
        })
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
    expect(loop.layout.b?.[0]).toBeGreaterThanOrEqual(MIN_WIDTH);
    expect(across).toBeGreaterThan(down ?? 0);
  });

  it("nodes that are added one after the other stand after the chosen one, never before it", () => {
    const [kind] = Object.values(catalog.kinds);
    let loop: LoopDocument = { ...smallLoop(), nodes: {}, edges: [], layout: {} };
    const middle = { x: 0, y: 0 };
    let chosen: string | undefined;
    for (const id of ["a", "b", "c", "d"]) {
      const { x, y } = placeOnward(catalog, loop, kind as KindInfo, middle, chosen);
      loop = {
        ...loop,
        nodes: { ...loop.nodes, [id]: { kind: (kind as KindInfo).kind } },
        layout: { ...loop.layout, [id]: [x, y] },
      };
      chosen = id === "c" ? "a" : id;
    }

    const across = ["a", "b", "c", "d"].map((id) => loop.layout[id]?.[0] ?? 0);
    expect(across[1]).toBeGreaterThan(across[0] ?? 0);
    expect(across[2]).toBeGreaterThan(across[1] ?? 0);
    // Right of `a` there is `b`: below that.
    expect(across[3]).toBe(across[1]);
    expect(loop.layout.d?.[1]).toBeGreaterThan(loop.layout.b?.[1] ?? 0);
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
  const drawn = (boxes: Box[], ...edges: RouteEdge[]) => {
    const { routes, laneTop } = routeEdges(boxes, edges);
    return { lines: edges.map(({ key }) => routes.get(key)), laneTop };
  };

  it("data that nothing stands before runs in a curve, else around", () => {
    const [near, far] = [box("near", 0, 0), box("far", 600, 0)];

    const [free] = drawn([near, far], edge("near", "far")).lines;
    expect(free?.path).toContain("C");

    const wall = box("wall", 300, -40, 300);
    const [around] = drawn([near, far, wall], edge("near", "far")).lines;
    expect(around?.path).not.toContain("C");
    expect(crosses(around?.points ?? [], [areaOf(wall)])).toBe(false);
  });

  it("data that runs back turns around both boxes", () => {
    const boxes = [box("a", 400, 0), box("b", 0, 0)];

    const [back] = drawn(boxes, edge("a", "b")).lines;

    expect(crosses(back?.points.slice(1, -1) ?? [], boxes.map(areaOf))).toBe(false);
  });

  it("what is learned runs below everything, shorter ways further up, and is never crossed by itself", () => {
    const boxes = [box("a", 0, 0), box("b", 400, 0), box("c", 800, 0), box("low", 400, 300)];
    const learned = { kind: "learning", label: 60 } as const;

    const { lines, laneTop } = drawn(boxes, edge("c", "a", learned), edge("b", "a", learned));

    const [far, near] = lines.map((line) => Math.max(...(line?.points ?? []).map(([, y]) => y)));
    expect(laneTop).toBeGreaterThan(400);
    expect(near).toBeGreaterThan(laneTop ?? 0);
    expect(far).toBeGreaterThanOrEqual((near ?? 0) + 24);
    const ends = lines.map((line) => line?.points.at(-1)?.[0] ?? 0);
    expect(ends[0]).toBeLessThan(ends[1] ?? 0);
  });

  it("what is measured past others runs above everything", () => {
    const boxes = [box("a", 0, 0), box("wall", 300, -200, 500), box("probe", 600, 0)];

    const [line] = drawn(boxes, edge("a", "probe", { kind: "measure" })).lines;

    expect(Math.min(...(line?.points ?? []).map(([, y]) => y))).toBeLessThan(-200);
  });

  it("two edges between the same two ports swing apart", () => {
    const boxes = [box("a", 0, 0), box("b", 400, 0)];

    const [one, other] = drawn(
      boxes,
      edge("a", "b", { key: "1", label: 40 }),
      edge("a", "b", { key: "2", label: 40 }),
    ).lines;

    expect(one?.path).not.toBe(other?.path);
    expect(one?.label).not.toEqual(other?.label);
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
    const summary = ["model.architecture", "model.type", "keep.*.rule", "of.*", "n"];
    const said = (data: JsonObject, kind: Partial<KindInfo> = { summary }) => {
      const kinds = { ...catalog.kinds, own: { ...catalog.kinds.actor, ...kind } as KindInfo };
      const loop = { ...smallLoop(), nodes: { one: { kind: "own", ...data } } };
      const values = summaryValues({ ...catalog, kinds }, loop, "one");
      return values.map(({ text }) => text).join(" · ");
    };

    expect(said({ model: { type: "scratch", architecture: "tiny" }, n: 3 })).toBe("tiny · scratch");
    expect(said({ keep: [{ rule: "a" }, { rule: "b" }], of: ["c", "d"] })).toBe("a · b");
    expect(said({ model: { type: "copy", architecture: "" }, of: [""] })).toBe("copy");
    expect(said({ kind: "unknown", n: "x" })).toBe("");
    expect(said(smallLoop().nodes.actor ?? {})).toBe("tiny-qwen3");
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
    const from = { node: "actor", port: "values", isOutput: false };
    const offered = () =>
      Object.values(catalog.kinds)
        .filter((kind) => fittingPort(catalog, loop, from, kind))
        .map((kind) => kind.kind);
    expect(offered()).toContain("critic");

    loop.edges.push({ from: "critic.values", to: "actor.values" });

    expect(offered()).toEqual([]);
  });
});
