import { describe, expect, it } from "vitest";
import type { LoopDocument } from "@/document/types";
import { routeParts } from "@/features/canvas/useFlowEdges";
import { edgeKinds } from "@/graph/edgeKinds";
import { boxesOf } from "@/graph/geometry";
import { withPlaces } from "@/graph/layout";
import { routeEdges } from "@/graph/routes";
import { runLayout } from "@/graph/runLayout";
import { catalog } from "../fixtures/loops";
import { presets } from "../fixtures/presets";

const loops = presets.map(([name, document]) => [name, withPlaces(catalog, document)] as const);
const placed = (document: LoopDocument) =>
  new Map(boxesOf(catalog, document).map((box) => [box.id, box]));

function sizeOf(document: LoopDocument) {
  const { area } = routeEdges(boxesOf(catalog, document), routeParts(catalog, document, true));
  if (!area) throw new Error("nothing is drawn");
  return { width: area.right - area.left, height: area.bottom - area.top };
}

describe("a loop as a run draws it", () => {
  it("of the first preset is in sight as a whole beside charts, timeline and texts", () => {
    const first = loops.find(([name]) => name === "grpo-arithmetic")?.[1];
    if (!first) throw new Error("no such preset");

    const before = sizeOf(first);
    const now = sizeOf(runLayout(catalog, first));

    expect(before.height).toBeGreaterThan(600);
    expect(now.height).toBeLessThanOrEqual(470);
    expect(now.width).toBeLessThanOrEqual(992);
  });

  it.each(loops)("%s keeps its order, and is no wider", (_, document) => {
    const run = runLayout(catalog, document);
    const [before, now] = [placed(document), placed(run)];
    const { leaderOf } = edgeKinds(catalog, document);
    for (const one of before.values()) {
      for (const other of before.values()) {
        const [a, b] = [now.get(one.id), now.get(other.id)];
        if (!a || !b) throw new Error("a card is gone");
        if (one.x < other.x) expect(a.x).toBeLessThanOrEqual(b.x);
        const isDocked = leaderOf.has(one.id) || leaderOf.has(other.id);
        if (one.y < other.y && !isDocked) expect(a.y).toBeLessThanOrEqual(b.y);
      }
    }
    expect(sizeOf(run).width).toBeLessThanOrEqual(sizeOf(document).width);
  });
});
