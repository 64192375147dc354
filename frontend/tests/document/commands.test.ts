import { describe, expect, it } from "vitest";
import { cutFragment, fromFragmentSpec, placeFragment, toFragmentSpec } from "@/document/fragment";
import { phaseAt, phaseList, phaseNames, schedule } from "@/document/phases";
import { applyChanges } from "@/state/commands/applyChanges";
import { connect, reconnectEdge, setEdgeOption } from "@/state/commands/edges";
import { setField, setValue } from "@/state/commands/fields";
import { addNode, moveNodes, pasteItems, removeItems, renameNode } from "@/state/commands/nodes";
import {
  addPhase,
  groupPhase,
  mergePhases,
  movePhase,
  removePhase,
  ungroupPhases,
} from "@/state/commands/phases";
import { replaceDocument } from "@/state/commands/replaceDocument";
import { locksOf, setLock } from "@/state/document/locks";
import { catalog, smallLoop } from "../fixtures/loops";

describe("commands on nodes and edges", () => {
  it("addNode adds the node, its place and its edges", () => {
    const loop = addNode(smallLoop(), {
      id: "held_out",
      data: { kind: "dataset" },
      position: [10, 20],
      edges: [{ from: "held_out.rows", to: "actor.demonstrations" }],
    });

    expect(loop.nodes.held_out).toEqual({ kind: "dataset" });
    expect(loop.layout.held_out).toEqual([10, 20]);
    expect(loop.edges.at(-1)).toEqual({ from: "held_out.rows", to: "actor.demonstrations" });
  });

  it("addNode leaves a node of that name alone", () => {
    const before = smallLoop();

    const after = addNode(before, { id: "actor", data: { kind: "dataset" }, position: [0, 0] });

    expect(after).toBe(before);
  });

  it("connect adds an edge once", () => {
    const edge = { from: "start.log_probs", to: "actor.reference" };

    const once = connect(smallLoop(), { edge });
    const twice = connect(once, { edge });

    expect(once.edges).toHaveLength(5);
    expect(twice).toBe(once);
  });

  it("reconnectEdge moves the ends and keeps the options", () => {
    const loop = reconnectEdge(smallLoop(), {
      key: "exact.scores->actor.rewards",
      from: "exact.scores",
      to: "start.rollouts",
    });

    expect(loop.edges[3]).toEqual({
      from: "exact.scores",
      to: "start.rollouts",
      id: "outcome",
      weight: 0.5,
    });
  });

  it("setEdgeOption sets and removes an option", () => {
    const key = "exact.scores->actor.rewards";

    const set = setEdgeOption(smallLoop(), { key, path: ["aggregate"], value: "mean" });
    const removed = setEdgeOption(set, { key, path: ["weight"], value: undefined });

    expect(set.edges[3]?.aggregate).toBe("mean");
    expect(removed.edges[3]).not.toHaveProperty("weight");
  });

  it("removeItems takes a node with its edges, its place and what phases taught it", () => {
    const loop = removeItems(smallLoop(), { nodes: ["actor"], edges: [] });

    expect(Object.keys(loop.nodes)).toEqual(["problems", "start", "exact"]);
    expect(loop.edges).toEqual([]);
    expect(loop.layout).not.toHaveProperty("actor");
    expect(phaseAt(loop, [0])?.learn).toEqual([]);
    expect(phaseAt(loop, [1, 0])?.learn).toEqual([]);
  });

  it("removeItems takes single edges by their key", () => {
    const loop = removeItems(smallLoop(), { nodes: [], edges: ["actor.rollouts->start.rollouts"] });

    expect(loop.edges.map((edge) => edge.to)).not.toContain("start.rollouts");
    expect(loop.edges).toHaveLength(3);
  });

  it("renameNode lets edges, place, references, ports, paths and metrics follow", () => {
    const loop = renameNode(smallLoop(), { catalog, from: "actor", to: "policy" });

    expect(Object.keys(loop.nodes)).toEqual(["problems", "policy", "start", "exact"]);
    expect(loop.nodes.start?.model).toEqual({ type: "snapshot", of: "policy" });
    expect(loop.edges.map((edge) => `${edge.from} ${edge.to}`)).toEqual([
      "problems.rows policy.prompts",
      "policy.rollouts exact.rollouts",
      "policy.rollouts start.rollouts",
      "exact.scores policy.rewards",
    ]);
    expect(loop.layout.policy).toEqual([320, 0]);
    expect(phaseAt(loop, [0])).toMatchObject({
      learn: ["policy.demonstrations"],
      set: { "nodes.policy.training.optimizer.lr": 0.01 },
    });
    expect(schedule(loop).triggers).toMatchObject([{ when: { metric: "policy.accuracy" } }]);
    expect(loop.rest.run).toMatchObject({ best: "policy.accuracy" });
  });

  it("renameNode follows names inside templates and leaves other words alone", () => {
    const before = smallLoop();
    before.nodes.ask = {
      kind: "template",
      text: "{{ actor.completion }} by the actor.",
      note: "actor",
    };

    const { nodes } = renameNode(before, { catalog, from: "actor", to: "policy" });

    expect(nodes.ask).toEqual({
      kind: "template",
      text: "{{ policy.completion }} by the actor.",
      note: "actor",
    });
  });

  it("renameNode lets the locks of its settings follow, and no others", () => {
    const paths = ["nodes.actor.training.optimizer.lr", "nodes.start.model.path"];
    const before = paths.reduce(
      (loop, path) => setLock(loop, { path, isLocked: true }),
      smallLoop(),
    );

    const after = renameNode(before, { catalog, from: "actor", to: "policy" });

    expect(locksOf(after)).toEqual(["nodes.policy.training.optimizer.lr", paths[1]]);
  });

  it("renameNode follows paths of values and leaves names of files alone", () => {
    const before = smallLoop();
    before.nodes.problems = {
      kind: "dataset",
      source: { type: "file", path: "problems.jsonl" },
      model: { type: "pretrained", path: "problems" },
    };
    before.rest.schedule = {
      anneal: [{ path: "nodes.problems.rows_per_step", from: 1, to: 2 }],
    };

    const loop = renameNode(before, { catalog, from: "problems", to: "questions" });

    expect(loop.nodes.questions).toEqual(before.nodes.problems);
    expect(schedule(loop).anneal).toMatchObject([{ path: "nodes.questions.rows_per_step" }]);
  });

  it("renameNode follows what the catalog marks and nothing else", () => {
    const before = smallLoop();
    const rows = [{ role: "actor", of: "actor", by: "actor", columns: ["actor"] }];
    before.nodes.inline = {
      kind: "dataset",
      note: "by the actor, {{ actor.completion }}",
      source: { type: "inline", rows },
    };
    before.nodes.ask = {
      kind: "template",
      text: "{{ actor.completion }} of actor.x {% if actor.x and 'actor.y' %}{{ 'actor.z' }}{% endif %}",
      columns: { actor: "{{ actor.completion }}", role: "actor" },
    };
    before.nodes.probe = { kind: "evaluate", of: ["actor"], metrics: ["accuracy"] };
    before.rest.description = "actor";
    before.rest.schedule = {
      phases: [
        {
          name: "actor",
          learn: ["actor.rewards"],
          odd: "actor",
          set: { "nodes.start.model.of": "actor", "nodes.inline.source.rows": rows },
        },
      ],
      anneal: [{ path: "nodes.actor.training.optimizer.lr", from: 1, to: 2 }],
      triggers: [
        { when: { metric: "probe.actor.actor", above: 0 }, do: { reset_optimizer: "actor" } },
      ],
    };

    const { nodes, rest } = renameNode(before, { catalog, from: "actor", to: "policy" });

    expect(nodes.inline).toEqual(before.nodes.inline);
    expect(nodes.ask).toEqual({
      kind: "template",
      text: "{{ policy.completion }} of actor.x {% if policy.x and 'actor.y' %}{{ 'actor.z' }}{% endif %}",
      columns: { actor: "{{ policy.completion }}", role: "actor" },
    });
    expect(nodes.probe?.of).toEqual(["policy"]);
    expect(rest.description).toBe("actor");
    expect(rest.schedule).toEqual({
      phases: [
        {
          name: "actor",
          learn: ["policy.rewards"],
          odd: "actor",
          set: { "nodes.start.model.of": "policy", "nodes.inline.source.rows": rows },
        },
      ],
      anneal: [{ path: "nodes.policy.training.optimizer.lr", from: 1, to: 2 }],
      triggers: [
        { when: { metric: "probe.policy.actor", above: 0 }, do: { reset_optimizer: "policy" } },
      ],
    });
  });

  it("renameNode does not touch a builtin that has the node's name", () => {
    const before = smallLoop();
    before.nodes.exact_match = { kind: "reward", source: { type: "builtin", name: "exact_match" } };

    const { nodes } = renameNode(before, { catalog, from: "exact_match", to: "right" });

    expect(nodes.right).toEqual({
      kind: "reward",
      source: { type: "builtin", name: "exact_match" },
    });
  });

  it("setField writes deep values and takes emptied parents away", () => {
    const set = setField(smallLoop(), {
      node: "actor",
      path: ["rollout", "max_new_tokens"],
      value: 16,
    });
    const reset = setField(set, {
      node: "actor",
      path: ["rollout", "max_new_tokens"],
      value: undefined,
    });

    expect(set.nodes.actor?.rollout).toEqual({ max_new_tokens: 16 });
    expect(reset.nodes.actor).toEqual(smallLoop().nodes.actor);
  });

  it("setValue finds edges by id, and settings by path", () => {
    const weighed = setValue(smallLoop(), { path: ["edges", "outcome", "weight"], value: 2 });
    const seeded = setValue(weighed, { path: ["run", "seed"], value: 7 });
    const named = setValue(seeded, { path: ["name"], value: "other" });

    expect(named.edges[3]?.weight).toBe(2);
    expect(named.rest.run).toMatchObject({ seed: 7 });
    expect(named.name).toBe("other");
  });

  it("moveNodes moves what exists and nothing else", () => {
    const loop = moveNodes(smallLoop(), { positions: { actor: [5, 6], ghost: [1, 1] } });

    expect(loop.layout).toEqual({ problems: [0, 0], actor: [5, 6] });
  });

  it("pasteItems adds a copied piece under free names, inner references included", () => {
    const before = smallLoop();
    const copied = toFragmentSpec(cutFragment(before, ["actor", "start"]));
    const fragment = placeFragment(catalog, fromFragmentSpec(copied), before, [32, 32]);

    const loop = pasteItems(before, { fragment });

    expect(Object.keys(loop.nodes)).toEqual([
      "problems",
      "actor",
      "start",
      "exact",
      "actor_2",
      "start_2",
    ]);
    expect(loop.nodes.start_2?.model).toEqual({ type: "snapshot", of: "actor_2" });
    expect(loop.edges.at(-1)).toEqual({ from: "actor_2.rollouts", to: "start_2.rollouts" });
    expect(loop.layout.actor_2).toEqual([352, 32]);
  });

  it("replaceDocument keeps equal parts as they are", () => {
    const before = smallLoop();
    const wanted = smallLoop();
    wanted.nodes.exact = { kind: "reward", source: { type: "builtin", name: "length" } };

    const after = replaceDocument(before, { document: wanted });

    expect(after.nodes.exact).toEqual(wanted.nodes.exact);
    expect(after.nodes.actor).toBe(before.nodes.actor);
    expect(after.rest).toBe(before.rest);
  });

  it("applyChanges applies each kind of change of a repair", () => {
    const loop = applyChanges(smallLoop(), {
      catalog,
      changes: [
        { op: "set", path: "edges.3.aggregate", value: "mean" },
        { op: "remove", path: "nodes.actor.training" },
        { op: "add_edge", path: "edges", value: "start.log_probs -> actor.reference" },
        { op: "remove_edge", path: "edges.0" },
        { op: "insert", path: "schedule.phases.0", value: { name: "first", steps: 1 } },
        { op: "rename", path: "nodes.exact", value: "right" },
        { op: "rename", path: "run.seed", value: "sed" },
      ],
    });

    expect(loop.edges.map((edge) => edge.to)).toEqual([
      "right.rollouts",
      "start.rollouts",
      "actor.rewards",
      "actor.reference",
    ]);
    expect(loop.edges[2]).toMatchObject({ from: "right.scores", aggregate: "mean" });
    expect(loop.nodes.actor).not.toHaveProperty("training");
    expect(phaseNames(loop)[0]).toBe("first");
    expect(loop.rest.run).toEqual({ sed: 0, best: "actor.accuracy" });
  });

  it("applyChanges reads the edges that a repair writes as text", () => {
    const loop = applyChanges(smallLoop(), {
      catalog,
      changes: [
        { op: "set", path: "edges.2", value: "actor.rollouts -> exact.rows" },
        { op: "set", path: "edges.outcome", value: "exact.scores -> actor.labels" },
        { op: "insert", path: "edges.0", value: "problems.rows -> start.rows" },
      ],
    });

    expect(loop.edges).toEqual([
      { from: "problems.rows", to: "start.rows" },
      { from: "problems.rows", to: "actor.prompts" },
      { from: "actor.rollouts", to: "exact.rollouts" },
      { from: "actor.rollouts", to: "exact.rows" },
      { from: "exact.scores", to: "actor.labels" },
    ]);
  });

  it("applyChanges removes the first edge by its ends", () => {
    const before = smallLoop();

    const { edges } = applyChanges(before, {
      catalog,
      changes: [{ op: "remove_edge", path: "edges", value: "problems.rows -> actor.prompts" }],
    });

    expect(edges).toEqual(before.edges.slice(1));
  });

  it("applyChanges leaves the edges alone where a path or a value names none", () => {
    const before = smallLoop();

    const after = applyChanges(before, {
      catalog,
      changes: [
        { op: "set", path: "edges.2", value: 5 },
        { op: "set", path: "edges.9.weight", value: 1 },
        { op: "set", path: "edges.nobody", value: "a.x -> b.y" },
        { op: "remove_edge", path: "edges.nobody" },
        { op: "remove", path: "edges.nobody" },
      ],
    });

    expect(after).toBe(before);
  });
});

describe("commands on phases", () => {
  it("addPhase puts a phase at its place", () => {
    const loop = addPhase(smallLoop(), {
      at: [1, 1],
      phase: { name: "more", steps: 2 },
      first: {},
    });

    expect(phaseNames(loop)).toEqual(["warm-up", "rl", "more"]);
  });

  it("addPhase turns a loop without phases into one with its length as the first", () => {
    const before = smallLoop();
    before.rest.schedule = { epochs: 4, max_staleness: 0 };

    const loop = addPhase(before, {
      at: [1],
      phase: { name: "second", steps: 2 },
      first: { name: "train", steps: 100 },
    });

    expect(schedule(loop)).toEqual({
      max_staleness: 0,
      phases: [
        { name: "train", epochs: 4 },
        { name: "second", steps: 2 },
      ],
    });
  });

  it("removePhase takes an emptied group along", () => {
    const loop = removePhase(smallLoop(), { at: [1, 0] });

    expect(phaseNames(loop)).toEqual(["warm-up"]);
    expect(phaseList(loop, [])).toHaveLength(1);
  });

  it("movePhase swaps neighbours and stops at the ends", () => {
    const moved = movePhase(smallLoop(), { at: [1], by: -1 });
    const again = movePhase(moved, { at: [0], by: -1 });

    expect(phaseList(moved, [])?.[0]).toHaveProperty("repeat", 3);
    expect(again).toBe(moved);
  });

  it("groupPhase and ungroupPhases undo each other", () => {
    const grouped = groupPhase(smallLoop(), { at: [0], repeat: 2 });
    const back = ungroupPhases(grouped, { at: [0] });

    expect(phaseList(grouped, [])?.[0]).toMatchObject({ repeat: 2, phases: [{ name: "warm-up" }] });
    expect(back).toEqual(smallLoop());
  });

  it("mergePhases moves a phase into the group beside it", () => {
    const loop = mergePhases(smallLoop(), { at: [0], side: 1 });

    expect(phaseList(loop, [])).toHaveLength(1);
    expect(phaseNames(loop)).toEqual(["warm-up", "rl"]);
  });
});
