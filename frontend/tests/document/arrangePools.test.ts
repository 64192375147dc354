/** Pool by pool: every frame holds its own nodes and no others, whatever the loop. */
import { describe, expect, it } from "vitest";
import { poolsOf } from "@/document/pools";
import type { LoopDocument } from "@/document/types";
import { arrangePools, framesOf } from "@/graph/frames";
import { areaAround, boxesOf } from "@/graph/geometry";
import { placeNodes } from "@/graph/layout";
import { overlap } from "@/graph/shapes";
import { catalog } from "../fixtures/loops";
import { presets } from "../fixtures/presets";

const pooled = presets.filter(([, document]) => poolsOf(document).length > 0);

/** Boxes in frames that are not theirs, and frames on frames. */
function strangers(document: LoopDocument) {
  const boxes = boxesOf(catalog, document);
  const frames = framesOf(catalog, document, boxes).filter(({ members }) => members.length > 0);
  return frames.flatMap((frame, place) => [
    ...boxes
      .filter(({ id }) => !frame.members.includes(id))
      .filter((box) => overlap(frame, areaAround([box]) ?? frame))
      .map(({ id }) => `${id} in ${frame.pool.name}`),
    ...frames
      .slice(place + 1)
      .filter((other) => overlap(frame, other))
      .map((other) => `${other.pool.name} on ${frame.pool.name}`),
  ]);
}

describe.each(pooled)("%s", (_, document) => {
  const layout = arrangePools(catalog, document);

  it("has each pool for itself, every node once, and its corner where it was", () => {
    const tidy = { ...document, layout };

    expect(Object.keys(layout).toSorted()).toEqual(Object.keys(document.nodes).toSorted());
    expect(strangers(tidy)).toEqual([]);
    expect(arrangePools(catalog, tidy)).toEqual(layout);
  });
});

it("as they come, some of these are not tidy", () => {
  const found = pooled.filter(
    ([, document]) => strangers({ ...document, layout: placeNodes(catalog, document) }).length > 0,
  );

  expect(found.length).toBeGreaterThan(0);
});
