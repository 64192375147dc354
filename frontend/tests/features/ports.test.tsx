// @vitest-environment jsdom
import { renderHook } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { JsonObject, KindInfo } from "@/api/types";
import { useNodePorts } from "@/features/canvas/useNodePorts";
import { nodeSize, shownPorts } from "@/graph/geometry";
import { LiveRun } from "@/live/LiveRun";
import { catalog, smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

const names = (ports: readonly { name: string }[]) => ports.map(({ name }) => name);

function portsOf(node: string, live?: LiveRun) {
  const { wrapper } = insideLoop(live ? { live } : {});
  const ports = renderHook(() => useNodePorts(node), { wrapper }).result.current;
  const { inputs, outputs, foldedInputs, foldedOutputs } = ports;
  return {
    inputs: names(inputs),
    outputs: names(outputs),
    folded: [...names(foldedInputs), ...names(foldedOutputs)],
  };
}

/** A kind with two inputs, of which one wants settings. */
function kindWith(when: KindInfo["inputs"][number]["when"]): KindInfo {
  const input = catalog.kinds.actor?.inputs[0] as KindInfo["inputs"][number];
  const inputs = [
    { ...input, name: "rows" },
    { ...input, name: "pairs", when },
  ];
  return { ...(catalog.kinds.actor as KindInfo), kind: "one", inputs, outputs: [] };
}

describe("ports of a node", () => {
  it("are at its sides those with an edge that brings or takes data, the others fold away", () => {
    const kind = catalog.kinds.actor;

    const { inputs, outputs, folded } = portsOf("actor");

    expect({ inputs, outputs }).toEqual({ inputs: ["prompts"], outputs: ["rollouts"] });
    // What teaches is at the bottom.
    const all = [...names(kind?.inputs ?? []), ...names(kind?.outputs ?? [])];
    const rest = all.filter((name) => !["prompts", "rollouts", "rewards"].includes(name));
    expect(folded.toSorted()).toEqual(rest.toSorted());
  });

  it("are not folded in a run, where none can be connected", () => {
    expect(portsOf("actor", new LiveRun("r")).folded).toEqual([]);
  });

  it("fold away only as far as the settings of the node can make use of them", () => {
    const loop = smallLoop();
    loop.edges = [];
    const folded = (data: JsonObject) => {
      loop.nodes.one = { kind: "one", ...data };
      const kinds = { one: kindWith({ "source.type": ["model"] }) };
      return names(shownPorts({ ...catalog, kinds }, loop, "one").foldedInputs);
    };

    expect(folded({ source: { type: "builtin" } })).toEqual(["rows"]);
    expect(folded({ source: { type: "model" } })).toEqual(["rows", "pairs"]);
  });

  it("take room only where they have an edge", () => {
    const [loop, bare] = [smallLoop(), smallLoop()];
    bare.edges = bare.edges.filter(({ to }) => !to.startsWith("actor."));
    bare.edges = bare.edges.filter(({ from }) => !from.startsWith("actor."));

    expect(nodeSize(catalog, loop, "actor").height).toBeGreaterThan(
      nodeSize(catalog, bare, "actor").height,
    );
  });
});
