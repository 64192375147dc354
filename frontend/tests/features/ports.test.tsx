// @vitest-environment jsdom
import { renderHook } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { nodeHeight } from "@/document/geometry";
import { useNodePorts } from "@/features/canvas/useNodePorts";
import { LiveRun } from "@/live/LiveRun";
import { catalog, smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

const names = (ports: readonly { name: string }[]) => ports.map(({ name }) => name);

function portsOf(node: string, isPointedAt: boolean, live?: LiveRun) {
  const { wrapper } = insideLoop(live ? { live } : {});
  const { inputs, outputs } = renderHook(() => useNodePorts(node, isPointedAt), { wrapper }).result
    .current;
  return { inputs: names(inputs), outputs: names(outputs) };
}

describe("ports of a node", () => {
  it("are those with an edge, and all while it is pointed at, those in use first", () => {
    const kind = catalog.kinds.actor;

    expect(portsOf("actor", false)).toEqual({
      inputs: ["prompts", "rewards"],
      outputs: ["rollouts"],
    });
    const all = portsOf("actor", true);
    expect(all.inputs.slice(0, 2)).toEqual(["prompts", "rewards"]);
    expect(all.inputs.toSorted()).toEqual(names(kind?.inputs ?? []).toSorted());
    expect(all.outputs.toSorted()).toEqual(names(kind?.outputs ?? []).toSorted());
  });

  it("stay folded in a run, where none can be connected", () => {
    expect(portsOf("actor", true, new LiveRun("r")).inputs).toEqual(["prompts", "rewards"]);
  });

  it("take room only where they have an edge", () => {
    const [loop, bare] = [smallLoop(), smallLoop()];
    bare.edges = bare.edges.filter(({ to }) => !to.startsWith("actor."));

    expect(nodeHeight(catalog, loop, "actor", false)).toBeGreaterThan(
      nodeHeight(catalog, bare, "actor", false),
    );
  });
});
