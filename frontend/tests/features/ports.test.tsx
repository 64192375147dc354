// @vitest-environment jsdom
import { renderHook } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { nodeSize } from "@/document/geometry";
import { useNodePorts } from "@/features/canvas/useNodePorts";
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

  it("take room only where they have an edge", () => {
    const [loop, bare] = [smallLoop(), smallLoop()];
    bare.edges = bare.edges.filter(({ to }) => !to.startsWith("actor."));
    bare.edges = bare.edges.filter(({ from }) => !from.startsWith("actor."));

    expect(nodeSize(catalog, loop, "actor").height).toBeGreaterThan(
      nodeSize(catalog, bare, "actor").height,
    );
  });
});
