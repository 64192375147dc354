import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Json } from "@/api/types";
import type { LoopDocument } from "@/document/types";
import { mergeDocuments } from "@/state/sync/merge";
import { smallLoop } from "../fixtures/loops";

type Edit = (document: LoopDocument) => void;

function edited(...edits: Edit[]): LoopDocument {
  const document = structuredClone(smallLoop());
  for (const edit of edits) edit(document);
  return document;
}

const setOf =
  (node: string, field: string, value: Json): Edit =>
  ({ nodes }) => {
    Object.assign(nodes[node] ?? {}, { [field]: value });
  };
const steps =
  (count: number): Edit =>
  ({ rest }) => {
    rest.schedule = { ...(rest.schedule as object), steps: count };
  };
const connect =
  (from: string, to: string): Edit =>
  ({ edges }) => {
    edges.push({ from, to });
  };
const remove =
  (id: string): Edit =>
  (document) => {
    delete document.nodes[id];
    delete document.layout[id];
    document.edges = document.edges.filter(
      ({ from, to }) => !from.startsWith(`${id}.`) && !to.startsWith(`${id}.`),
    );
  };
const add =
  (id: string): Edit =>
  ({ nodes, layout }) => {
    nodes[id] = { kind: "dataset", rows_per_step: 1 };
    layout[id] = [1, 2];
  };

/** Edits of places that have nothing to do with each other. */
const EDITS: readonly Edit[] = [
  setOf("actor", "note", "a policy"),
  setOf("actor", "pool", "other"),
  setOf("problems", "rows_per_step", 64),
  ({ nodes }) => Reflect.deleteProperty(nodes.problems ?? {}, "source"),
  steps(7),
  add("more"),
  add("others"),
  connect("problems.rows", "more.rows"),
  ({ name: _, ...document }) => Object.assign(document.rest, { description: "words" }),
  ({ layout }) => Object.assign(layout, { actor: [900, 900] }),
];

const some = fc.uniqueArray(fc.nat(EDITS.length - 1));
const take = (places: readonly number[]) =>
  edited(...places.toSorted((a, b) => a - b).flatMap((place) => EDITS[place] ?? []));
/** Edges have no order of their own, and keys of a mapping none that counts. */
const plain = (document: LoopDocument) => ({
  ...document,
  edges: document.edges.toSorted((a, b) => `${a.from}${a.to}`.localeCompare(`${b.from}${b.to}`)),
});

describe("two versions of one", () => {
  it("edits of different places are both there, whoever made them", () => {
    fc.assert(
      fc.property(some, some, (one, other) => {
        const theirs = other.filter((place) => !one.includes(place));

        const merge = mergeDocuments(edited(), take(one), take(theirs));

        expect(merge.collisions).toEqual([]);
        expect(plain(merge.decide({}))).toEqual(plain(take([...one, ...theirs])));
      }),
      { numRuns: 300 },
    );
  });

  it("the same edits are made once", () => {
    fc.assert(
      fc.property(some, (places) => {
        const merge = mergeDocuments(edited(), take(places), take(places));

        expect(merge.collisions).toEqual([]);
        expect(plain(merge.decide({}))).toEqual(plain(take(places)));
        expect(merge.mine).toEqual(merge.theirs);
      }),
      { numRuns: 100 },
    );
  });

  it("one place that both changed is asked for, and nothing else", () => {
    const mine = edited(steps(5), setOf("actor", "note", "mine"));
    const theirs = edited(steps(9), add("more"));

    const merge = mergeDocuments(edited(), mine, theirs);

    expect(merge.collisions).toMatchObject([{ key: "schedule.steps", mine: 5, theirs: 9 }]);
    expect(merge.decide({}).rest.schedule).toMatchObject({ steps: 5 });
    const decided = merge.decide({ "schedule.steps": "theirs" });
    expect(decided.rest.schedule).toMatchObject({ steps: 9 });
    expect(decided.nodes.actor).toMatchObject({ note: "mine" });
    expect(decided.nodes).toHaveProperty("more");
  });

  it("a node that one removed and the other changed is asked for", () => {
    const merge = mergeDocuments(
      edited(),
      edited(remove("problems")),
      edited(setOf("problems", "rows_per_step", 99)),
    );

    expect(merge.collisions.map(({ key }) => key)).toEqual(["nodes.problems"]);
    expect(merge.decide({}).nodes).not.toHaveProperty("problems");
    expect(merge.decide({ "nodes.problems": "theirs" }).nodes.problems).toMatchObject({
      rows_per_step: 99,
    });
  });

  it("a node that one removed and the other connected is asked for; gone, its edges go with it", () => {
    const theirs = edited(add("more"), connect("problems.rows", "more.rows"));

    const merge = mergeDocuments(edited(), edited(remove("problems")), theirs);

    expect(merge.collisions.map(({ key }) => key)).toEqual(["nodes.problems"]);
    const ends = (document: LoopDocument) => document.edges.map(({ to }) => to);
    expect(ends(merge.decide({}))).not.toContain("more.rows");
    expect(ends(merge.decide({ "nodes.problems": "theirs" }))).toContain("more.rows");
  });

  it("a shape that was exchanged is taken whole", () => {
    const mine = edited(setOf("problems", "source", { type: "file", path: "x" }));
    const theirs = edited(({ nodes }) =>
      Object.assign(nodes.problems?.source as object, { split: "test" }),
    );

    const merge = mergeDocuments(edited(), mine, theirs, (path) => path.at(-1) === "source");

    expect(merge.collisions.map(({ key }) => key)).toEqual(["nodes.problems.source"]);
    expect(merge.decide({}).nodes.problems?.source).toEqual({ type: "file", path: "x" });
  });
});
