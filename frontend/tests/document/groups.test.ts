/** Groups: kept with the loop, closed to one card to which edges stay attached, arranged as one. */
import { describe, expect, it } from "vitest";
import { fromSpec, toSpec } from "@/document/convert";
import { membersOf } from "@/document/groups";
import type { LoopDocument } from "@/document/types";
import { routeParts } from "@/features/canvas/useFlowEdges";
import { foldEdges, foldOf } from "@/graph/folding";
import { arrange, placeNodes, withPlaces } from "@/graph/layout";
import { setGroup } from "@/state/commands/groups";
import { removeItems, renameNode } from "@/state/commands/nodes";
import { dispatch, startHistory, undo } from "@/state/document/history";
import { catalog, smallLoop } from "../fixtures/loops";

const CLOSED = { nodes: ["actor", "start"], closed: true } as const;

function grouped(): LoopDocument {
  return { ...smallLoop(), groups: { solver: { ...CLOSED, nodes: [...CLOSED.nodes] } } };
}

describe("a group", () => {
  it("is written to the layout and read back; what does not read stays as it is", () => {
    const spec = toSpec(grouped());
    expect(spec.layout).toMatchObject({ $groups: { solver: CLOSED } });
    expect(fromSpec(spec).groups).toEqual({ solver: CLOSED });

    const odd = { ...spec, layout: { $groups: { solver: { nodes: [1] } } } };
    expect(fromSpec(odd).groups).toBeUndefined();
    expect(toSpec(fromSpec(odd)).layout).toEqual(odd.layout);
  });

  it("of a pool has all that run there", () => {
    const document = smallLoop();
    document.nodes.actor = { ...document.nodes.actor, kind: "actor", pool: "train" };
    expect(membersOf(catalog, document, { pool: "train" })).toEqual(["actor"]);
  });

  it("follows the names of its nodes, loses those that are deleted, and ends with the last", () => {
    let history = startHistory(grouped());
    history = dispatch(history, renameNode, { catalog, from: "actor", to: "solver" }, { at: 0 });
    expect(history.document.groups?.solver?.nodes).toEqual(["solver", "start"]);
    history = dispatch(history, removeItems, { nodes: ["solver"], edges: [] }, { at: 0 });
    expect(history.document.groups?.solver?.nodes).toEqual(["start"]);
    history = dispatch(history, removeItems, { nodes: ["start"], edges: [] }, { at: 0 });
    expect(history.document.groups).toBeUndefined();
    expect(undo(history).document.groups?.solver?.nodes).toEqual(["start"]);
  });

  it("takes its nodes out of other groups", () => {
    const history = dispatch(
      startHistory(grouped()),
      setGroup,
      {
        name: "other",
        group: { nodes: ["actor", "exact"] },
      },
      { at: 0 },
    );
    expect(history.document.groups).toEqual({
      solver: { nodes: ["start"], closed: true },
      other: { nodes: ["actor", "exact"] },
    });
  });
});

describe("a closed group", () => {
  it("is one card, with an end for each edge that leads in or out", () => {
    const document = withPlaces(catalog, grouped());
    const fold = foldOf(catalog, document);
    const [card] = fold.cards;

    expect(card?.members).toEqual(["actor", "start"]);
    expect(card?.ends.map(({ port, isTarget }) => `${port} ${isTarget}`)).toEqual([
      "actor.prompts true",
      "actor.rollouts false",
    ]);

    const parts = foldEdges(routeParts(catalog, document, false), fold);
    const ends = parts.map(({ source, target, kind }) => `${source} ${target} ${kind}`);
    // The tie between the actor and its reference runs within the group.
    expect(ends).toEqual([
      "problems $group:solver data",
      "$group:solver exact data",
      "exact $group:solver learning",
    ]);
  });

  it("is arranged as one card, whose nodes keep their places to each other", () => {
    const document = withPlaces(catalog, grouped());
    const before = document.layout;
    const after = arrange(catalog, document);
    const apart = (layout: LoopDocument["layout"]) => [
      (layout.start?.[0] ?? 0) - (layout.actor?.[0] ?? 0),
      (layout.start?.[1] ?? 0) - (layout.actor?.[1] ?? 0),
    ];

    expect(apart(after)).toEqual(apart(before));
    expect(Object.keys(after).toSorted()).toEqual(Object.keys(document.nodes).toSorted());
    const places = placeNodes(catalog, { ...document, layout: after });
    const left = (id: string) => places[id]?.[0] ?? 0;
    expect(left("problems")).toBeLessThan(left("$group:solver"));
    expect(left("$group:solver")).toBeLessThan(left("exact"));
    // Nothing that stands for a group is kept with the loop.
    expect(withPlaces(catalog, { ...grouped(), layout: {} }).layout).not.toHaveProperty(
      "$group:solver",
    );
  });
});
