/** Any command with any arguments, sensible or not, on the small loop: what fast-check draws histories from. */
import fc from "fast-check";
import { spliceOf } from "@/document/canConnect";
import { edgeKeys, portRef } from "@/document/edges";
import { cutFragment, placeFragment } from "@/document/fragment";
import type { LoopDocument } from "@/document/types";
import { boxesOf } from "@/graph/geometry";
import { type Alignment, align, distribute } from "@/graph/guides";
import { applyChanges, applyFit } from "@/state/commands/applyChanges";
import { connect, reconnectEdge, setEdgeOption, setWeights } from "@/state/commands/edges";
import {
  describeHardware,
  setField,
  setFields,
  setHardware,
  setNote,
  setSource,
  setValue,
} from "@/state/commands/fields";
import { setGroup } from "@/state/commands/groups";
import {
  addNode,
  insertOnEdge,
  moveNodes,
  pasteItems,
  removeItems,
  renameNode,
} from "@/state/commands/nodes";
import {
  addPhase,
  groupPhase,
  mergePhases,
  movePhase,
  removePhase,
  takeTurns,
  ungroupPhases,
} from "@/state/commands/phases";
import { placeInPool, placeNode, resizePool } from "@/state/commands/pools";
import { replaceDocument } from "@/state/commands/replaceDocument";
import type { Command } from "@/state/document/command";
import { dispatch, type History } from "@/state/document/history";
import { setLock } from "@/state/document/locks";
import { catalog, smallLoop } from "../fixtures/loops";

export interface Step {
  command: string;
  apply: (history: History, at: number) => History;
}

/** Arguments may depend on the document, as those of a gesture do; null where there is nothing to do. */
type Asked<A> = A | ((document: LoopDocument) => A | null);

const step = <A>(name: string, command: Command<A>, asked: Asked<A>, group?: string): Step => ({
  command: name,
  apply: (history, at) => {
    const args =
      typeof asked === "function"
        ? (asked as (document: LoopDocument) => A | null)(history.document)
        : asked;
    if (args === null) return history;
    return dispatch(history, command, args, { at, ...(group ? { group } : {}) });
  },
});

const isThere = (document: LoopDocument, ...ends: string[]) =>
  ends.every((end) => portRef(end).node in document.nodes);

const name = fc.constantFrom("problems", "actor", "start", "exact", "other", "third");
const names = fc.uniqueArray(name, { maxLength: 3 });
const place = fc.tuple(fc.integer({ min: -999, max: 999 }), fc.integer({ min: -999, max: 999 }));
const value = fc.option(fc.oneof(fc.integer(), fc.string(), fc.boolean()), { nil: undefined });
const phase = fc.constantFrom([0], [1], [2], [1, 0], [1, 1]);
const pick = fc.nat({ max: 20 });
const keyAt = ({ edges }: LoopDocument, at: number) => edgeKeys(edges)[at % edges.length] ?? null;

const LOCKED = "nodes.actor.training.micro_batch";
const SIZES = { train: 4, rest: 4 };

const NOTES: NonNullable<LoopDocument["notes"]> = {
  note_1: { at: [0, 0], size: [200, 90], text: "why" },
};

const COMMANDS: Record<string, fc.Arbitrary<Step>> = {
  addNode: fc
    .tuple(name, place)
    .map(([id, position]) => step("addNode", addNode, { id, data: { kind: "dataset" }, position })),
  addPhase: fc
    .tuple(phase, fc.nat(99))
    .map(([at, steps]) =>
      step("addPhase", addPhase, { at, phase: { name: "more", steps }, first: { name: "first" } }),
    ),
  applyChanges: fc
    .tuple(name, fc.constantFrom("set", "remove", "rename", "insert", "add_edge", "remove_edge"))
    .map(([id, op]) =>
      step("applyChanges", applyChanges, (document) => {
        const edge = "problems.rows -> actor.prompts";
        if (op === "add_edge")
          return isThere(document, "problems.rows", "actor.prompts")
            ? { catalog, changes: [{ op, path: "edges", value: edge }] }
            : null;
        const isEdge = op === "remove_edge" || op === "insert";
        const path = isEdge ? (op === "insert" ? "run.tags.0" : edge) : `nodes.${id}`;
        if (op === "set")
          return id in document.nodes
            ? { catalog, changes: [{ op, path: `${path}.rows_per_step`, value: 8 }] }
            : null;
        return { catalog, changes: [{ op, path, value: op === "rename" ? "renamed" : "tag" }] };
      }),
    ),
  applyFit: fc.tuple(name, fc.boolean()).map(([id, isUnlocked]) =>
    step("applyFit", applyFit, (document) => {
      if (!(id in document.nodes)) return null;
      const path = `nodes.${id}.training.micro_batch`;
      const edits = [{ op: "set" as const, path, value: 4 }];
      return { catalog, edits, unlocks: isUnlocked ? [LOCKED] : [] };
    }),
  ),
  connect: fc.tuple(name, name).map(([from, to]) =>
    step("connect", connect, (document) => {
      const edge = { from: `${from}.rows`, to: `${to}.prompts` };
      return isThere(document, edge.from, edge.to) ? { edge } : null;
    }),
  ),
  describeHardware: fc
    .integer({ min: 1, max: 4 })
    .map((nodes) =>
      step("describeHardware", describeHardware, { catalog, values: { nodes, gpu: "h100" } }),
    ),
  groupPhase: fc
    .tuple(phase, fc.integer({ min: 1, max: 9 }))
    .map(([at, repeat]) => step("groupPhase", groupPhase, { at, repeat })),
  insertOnEdge: fc.tuple(pick, name, place).map(([at, id, position]) =>
    step("insertOnEdge", insertOnEdge, (document) => {
      const key = keyAt(document, at);
      const edge = document.edges[at % document.edges.length];
      const ports = edge && spliceOf(catalog, document, edge, "filter");
      if (key === null || !ports) return null;
      return { key, node: id, ports, positions: { [id]: position }, data: { kind: "filter" } };
    }),
  ),
  mergePhases: fc
    .tuple(phase, fc.constantFrom(-1 as const, 1 as const))
    .map(([at, side]) => step("mergePhases", mergePhases, { at, side })),
  moveNodes: fc
    .tuple(name, place)
    .map(([id, at]) => step("moveNodes", moveNodes, { positions: { [id]: at } }, "move")),
  align: fc.tuple(names, fc.constantFrom<Alignment>("left", "middle", "bottom")).map(([ids, by]) =>
    step("align", moveNodes, (document) => ({
      positions: align(boxesOf(catalog, document, ids), by),
    })),
  ),
  distribute: fc.constantFrom("across" as const, "down" as const).map((along) =>
    step("distribute", moveNodes, (document) => ({
      positions: distribute(boxesOf(catalog, document), along),
    })),
  ),
  movePhase: fc
    .tuple(phase, fc.constantFrom(-1 as const, 1 as const))
    .map(([at, by]) => step("movePhase", movePhase, { at, by })),
  pasteItems: names.map((ids) =>
    step("pasteItems", pasteItems, (document) => ({
      fragment: placeFragment(catalog, cutFragment(document, ids), document, [32, 32]),
    })),
  ),
  placeInPool: fc
    .tuple(names, fc.constantFrom("train", "write", null))
    .map(([nodes, pool]) => step("placeInPool", placeInPool, { catalog, nodes, pool })),
  placeNode: fc
    .tuple(name, fc.constantFrom("train", "write"))
    .map(([node, pool]) =>
      step("placeNode", placeNode, { node, pool, path: ["pool"], laidOut: SIZES }),
    ),
  resizePool: fc
    .integer({ min: 0, max: 9 })
    .map((gpus) =>
      step("resizePool", resizePool, { pool: "train", gpus, other: "rest", laidOut: SIZES }),
    ),
  reconnectEdge: fc.tuple(pick, name).map(([at, id]) =>
    step("reconnectEdge", reconnectEdge, (document) => {
      const key = keyAt(document, at);
      const edge = document.edges[at % document.edges.length];
      if (key === null || !edge || !(id in document.nodes)) return null;
      return { key, from: edge.from, to: `${id}.rewards` };
    }),
  ),
  removeItems: fc.tuple(names, pick).map(([nodes, at]) =>
    step("removeItems", removeItems, (document) => ({
      nodes,
      edges: [keyAt(document, at) ?? ""],
    })),
  ),
  removePhase: phase.map((at) => step("removePhase", removePhase, { at })),
  renameNode: fc
    .tuple(name, name)
    .map(([from, to]) => step("renameNode", renameNode, { catalog, from, to })),
  replaceDocument: fc.tuple(fc.integer(), fc.boolean()).map(([seed, hasNotes]) =>
    step("replaceDocument", replaceDocument, (document) => ({
      document: {
        ...smallLoop(),
        rest: { ...document.rest, run: { seed } },
        ...(hasNotes ? { notes: NOTES } : {}),
      },
    })),
  ),
  setEdgeOption: fc.tuple(pick, value).map(([at, to]) =>
    step("setEdgeOption", setEdgeOption, (document) => {
      const key = keyAt(document, at);
      return key === null ? null : { key, path: ["weight"], value: to };
    }),
  ),
  setField: fc
    .tuple(name, value)
    .map(([node, to]) =>
      step("setField", setField, { node, path: ["training", "epochs"], value: to }, `f ${node}`),
    ),
  setFields: fc
    .tuple(names, value)
    .map(([nodes, to]) => step("setFields", setFields, { nodes, path: ["note"], value: to })),
  setHardware: fc
    .constantFrom("cpu", "8xH100")
    .map((preset) => step("setHardware", setHardware, { catalog, preset })),
  setLock: fc.boolean().map((isLocked) => step("setLock", setLock, { path: LOCKED, isLocked })),
  setSource: fc.tuple(name, fc.boolean()).map(([node, isMapped]) =>
    step("setSource", setSource, {
      node,
      source: { type: "file", path: "a.jsonl" },
      columns: isMapped ? { prompt: "question" } : {},
    }),
  ),
  setGroup: fc
    .tuple(fc.constantFrom("one", "two"), names, fc.constantFrom("new", "closed", "none", "named"))
    .map(([group, nodes, what]) =>
      step("setGroup", setGroup, {
        name: group,
        group: what === "none" ? null : { nodes, ...(what === "closed" ? { closed: true } : {}) },
        ...(what === "named" ? { as: "three" } : {}),
      }),
    ),
  setNote: fc
    .tuple(fc.constantFrom("note_1", "note_2"), place, fc.constantFrom("new", "move", "none"))
    .map(([id, at, what]) =>
      step("setNote", setNote, {
        id,
        note: what === "none" ? null : what === "move" ? { at } : { at, size: at, text: "x" },
      }),
    ),
  setValue: value.map((to) =>
    step("setValue", setValue, { path: ["run", "seed"], value: to }, "seed"),
  ),
  setWeights: fc.tuple(pick, fc.double({ min: 0, max: 1, noNaN: true })).map(([at, weight]) =>
    step("setWeights", setWeights, (document) => {
      const key = keyAt(document, at);
      return key === null ? null : { weights: { [key]: weight } };
    }),
  ),
  takeTurns: fc.integer({ min: 1, max: 9 }).map((repeat) =>
    step("takeTurns", takeTurns, {
      group: { repeat, phases: [{ name: "a", steps: 1, learn: ["actor.rewards"] }] },
    }),
  ),
  ungroupPhases: phase.map((at) => step("ungroupPhases", ungroupPhases, { at })),
};

export const COMMAND_NAMES = Object.keys(COMMANDS);

/** A step, and the milliseconds after the one before. */
export const anyStep = fc.tuple(
  fc.oneof(...Object.values(COMMANDS)),
  fc.integer({ min: 0, max: 2000 }),
);
