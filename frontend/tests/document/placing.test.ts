/** Frames, placing in pools, inserting in edges, lines to stand in: what a drag means. */
import { describe, expect, it } from "vitest";
import { isUnconnected, spliceOf } from "@/document/canConnect";
import { fromSpec, toSpec } from "@/document/convert";
import type { LoopDocument, Point } from "@/document/types";
import { framesOf, framesWhile, placingOf, poolAt } from "@/graph/frames";
import { boxesOf } from "@/graph/geometry";
import { align, distribute, guide } from "@/graph/guides";
import { insertOnEdge } from "@/state/commands/nodes";
import { placeInPool } from "@/state/commands/pools";
import { catalog, smallLoop } from "../fixtures/loops";

function pooled(): LoopDocument {
  const loop = smallLoop();
  loop.nodes.critic = { kind: "critic" };
  loop.nodes.actor = { ...loop.nodes.actor, kind: "actor", pool: "train" };
  loop.nodes.critic.pool = "train";
  loop.nodes.start = { ...loop.nodes.start, kind: "reference", pool: "write" };
  loop.layout = {
    problems: [0, 0],
    actor: [320, 0],
    critic: [320, 320],
    start: [960, 0],
    exact: [960, 640],
  };
  loop.rest.hardware = { preset: "cpu", pools: { train: { gpus: 4 }, write: {}, spare: {} } };
  return loop;
}

const moved = (loop: LoopDocument, places: Record<string, Point>) =>
  boxesOf(catalog, { ...loop, layout: { ...loop.layout, ...places } });
const placing = (loop: LoopDocument, places: Record<string, Point>) =>
  placingOf(catalog, loop, boxesOf(catalog, loop), moved(loop, places), Object.keys(places));

describe("frames", () => {
  it("are the pools of the hardware round the nodes that name them; the others wait beside them", () => {
    const loop = pooled();

    const frames = framesOf(catalog, loop, boxesOf(catalog, loop));

    expect(frames.map(({ pool, members }) => [pool.name, pool.size, members])).toEqual([
      ["train", "4 GPUs", ["actor", "critic"]],
      ["write", "", ["start"]],
      ["spare", "", []],
    ]);
    const [train, write, spare] = frames;
    for (const { id, x, y, width, height } of boxesOf(catalog, loop)) {
      if (!train?.members.includes(id)) continue;
      expect(x).toBeGreaterThan(train.left);
      expect(y).toBeGreaterThan(train.top);
      expect(x + width).toBeLessThan(train.right);
      expect(y + height).toBeLessThan(train.bottom);
    }
    expect(spare?.left).toBeGreaterThan(write?.right ?? 0);
  });

  it("a loop without pools has none", () => {
    expect(framesOf(catalog, smallLoop(), boxesOf(catalog, smallLoop()))).toEqual([]);
  });

  it("a frame goes with all of its nodes and stays where one of them goes", () => {
    const loop = pooled();
    const boxes = boxesOf(catalog, loop);
    const still = framesOf(catalog, loop, boxes);

    const one = framesWhile(
      catalog,
      loop,
      boxes,
      moved(loop, { actor: [0, 0] }),
      new Set(["actor"]),
    );
    const all = framesWhile(
      catalog,
      loop,
      boxes,
      moved(loop, { actor: [360, 0], critic: [360, 320] }),
      new Set(["actor", "critic"]),
    );

    expect(one[0]).toEqual(still[0]);
    expect(all[0]?.left).toBe((still[0]?.left ?? 0) + 40);
  });
});

describe("a drag", () => {
  it("into a frame places a node, out of it takes it away, within it moves it", () => {
    const loop = pooled();

    expect(placing(loop, { critic: [960, 20] })).toEqual({ nodes: ["critic"], pool: "write" });
    expect(placing(loop, { critic: [320, 900] })).toEqual({ nodes: ["critic"], pool: null });
    expect(placing(loop, { critic: [330, 300] })).toBeNull();
  });

  it("of all nodes of a frame is a move", () => {
    const loop = pooled();

    expect(placing(loop, { actor: [320, 900], critic: [320, 1200] })).toBeNull();
  });

  it("of the only node of a frame takes it out once the two are apart, and moves it before", () => {
    const loop = pooled();
    const alone = [boxesOf(catalog, loop), moved(loop, { start: [1000, 40] })] as const;
    const frames = framesWhile(catalog, loop, ...alone, new Set(["start"]));

    expect(frames[1]).toEqual(framesOf(catalog, loop, boxesOf(catalog, loop))[1]);
    expect(placing(loop, { start: [1100, 60] })).toBeNull();
    expect(placing(loop, { start: [1400, 900] })).toEqual({ nodes: ["start"], pool: null });
  });

  it("into a frame that waits places a node there", () => {
    const loop = pooled();
    const spare = framesOf(catalog, loop, boxesOf(catalog, loop))[2];

    const answer = placing(loop, { critic: [spare?.left ?? 0, (spare?.top ?? 0) + 10] });

    expect(answer).toEqual({ nodes: ["critic"], pool: "spare" });
  });

  it("of a new node ends in a pool where its kind can be in one", () => {
    const loop = pooled();
    const at = (kind: string) =>
      poolAt(catalog, loop, boxesOf(catalog, loop), kind, { x: 400, y: 100 });

    expect(at("critic")).toBe("train");
    expect(at("nothing")).toBeNull();
  });
});

it("placing writes the field that names the pool, and nothing where there is none", () => {
  const before = smallLoop();
  before.nodes.odd = { kind: "unknown" };
  const nodes = ["start", "odd"];

  const inside = placeInPool(before, { catalog, nodes, pool: "write" });
  const outside = placeInPool(inside, { catalog, nodes, pool: null });

  expect(inside.nodes.start?.pool).toBe("write");
  expect(inside.nodes.odd).toEqual({ kind: "unknown" });
  expect(outside).toEqual(before);
});

describe("inserting in an edge", () => {
  it("leads the edge through a node whose ports fit, and keeps its options", () => {
    const loop = smallLoop();
    const edge = loop.edges[3];
    loop.nodes.mix = { kind: "filter" };
    const key = "exact.scores->actor.rewards";
    const ports = edge && spliceOf(catalog, loop, edge, "filter");
    expect(ports).toEqual({ input: "scores", output: "scores" });
    expect(isUnconnected(loop, "mix")).toBe(true);

    const after = insertOnEdge(loop, {
      key,
      node: "mix",
      ports: ports as NonNullable<typeof ports>,
      positions: { mix: [5, 6] },
    });

    expect(after.edges.slice(3)).toEqual([
      { from: "exact.scores", to: "mix.scores" },
      { from: "mix.scores", to: "actor.rewards", id: "outcome", weight: 0.5 },
    ]);
    expect(after.layout.mix).toEqual([5, 6]);
  });

  it("is not offered where the types do not fit", () => {
    const loop = smallLoop();
    const [rows] = loop.edges;

    expect(rows && spliceOf(catalog, loop, rows, "reward")).toBeNull();
    expect(rows && spliceOf(catalog, loop, rows, "nothing")).toBeNull();
  });
});

describe("lines", () => {
  const box = (id: string, x: number, y: number, height = 100) => ({
    id,
    x,
    y,
    width: 200,
    height,
  });

  it("a box near a line of another is drawn to it, and the line is shown", () => {
    const { by, guides } = guide([box("a", 403, 300)], [box("b", 400, 0)], 6);

    expect(by).toEqual([-3, 0]);
    expect(guides).toContainEqual({ axis: "x", at: 400, from: 0, to: 400 });
  });

  it("one that is farther away is left alone", () => {
    expect(guide([box("a", 410, 300)], [box("b", 400, 0)], 6)).toEqual({ by: [0, 0], guides: [] });
  });

  it("align and distribute put boxes in line and at even distances", () => {
    const boxes = [box("a", 0, 0), box("b", 10, 130, 60), box("c", 40, 400)];

    expect(align(boxes, "left")).toEqual({ a: [0, 0], b: [0, 130], c: [0, 400] });
    expect(align(boxes, "right")).toEqual({ a: [40, 0], b: [40, 130], c: [40, 400] });
    expect(distribute(boxes, "down")).toEqual({ a: [0, 0], b: [10, 220], c: [40, 400] });
    expect(distribute(boxes.slice(0, 2), "down")).toEqual({});
  });
});

describe("notes", () => {
  const note = { at: [1, 2] as Point, size: [200, 100] as Point, text: "why: \n- this" };

  it("stand in the layout of the file and come back", () => {
    const loop = { ...smallLoop(), notes: { note_1: note } };

    const spec = toSpec(loop);

    expect(spec.layout).toMatchObject({ actor: [320, 0], $notes: { note_1: note } });
    expect(fromSpec(spec)).toEqual(loop);
  });

  it("that do not read are kept as they are", () => {
    const odd = { note_1: { at: "here" } };
    const spec = { ...toSpec(smallLoop()), layout: { $notes: odd } };

    const loop = fromSpec(spec);

    expect(loop.notes).toBeUndefined();
    expect(toSpec(loop).layout).toMatchObject({ $notes: odd });
  });
});
