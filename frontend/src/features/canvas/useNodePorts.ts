import { useUpdateNodeInternals } from "@xyflow/react";
import { useLayoutEffect, useMemo } from "react";
import { ofOtherModes } from "@/catalog/modes";
import { canConnect } from "@/document/canConnect";
import { shownPorts } from "@/graph/geometry";
import { useDocument, useMode, useOpenLoop } from "@/state/document/context";
import { inOrder, useDrawnFrom } from "./handles";

export function useNodePorts(node: string) {
  const { catalog, store, runId } = useOpenLoop();
  const edges = useDocument((state) => state.document.edges);
  const data = useDocument((state) => state.document.nodes[node]);
  const mode = useMode();
  const drawn = useDrawnFrom();

  // biome-ignore lint/correctness/useExhaustiveDependencies: `edges` and `data` are what is read of the document
  const ports = useMemo(() => {
    const { document } = store.getState();
    const { inputs, outputs, foldedInputs, foldedOutputs } = shownPorts(catalog, document, node);
    if (runId !== null) return { inputs, outputs, foldedInputs: [], foldedOutputs: [] };
    const others = ofOtherModes(mode, data?.kind);
    return {
      inputs,
      outputs,
      foldedInputs: foldedInputs.filter((port) => !others.ports.includes(port.name)),
      foldedOutputs: foldedOutputs.filter((port) => !others.outputs.includes(port.name)),
    };
  }, [catalog, store, node, data, edges, mode, runId]);

  const drawing = useMemo(() => {
    if (drawn === null || runId !== null) return { fitting: null, drawnFrom: null };
    const { document } = store.getState();
    const fits = (port: string) =>
      canConnect(catalog, document, ...inOrder(drawn, { node, port })).ok;
    const { foldedInputs, foldedOutputs } = ports;
    const [own, offered, side] = drawn.isOutput
      ? ([foldedOutputs, foldedInputs, "outputs"] as const)
      : ([foldedInputs, foldedOutputs, "inputs"] as const);
    const isOwn = drawn.node === node && own.some(({ name }) => name === drawn.port);
    return {
      fitting: new Set(offered.map(({ name }) => name).filter(fits)),
      drawnFrom: isOwn ? side : null,
    };
  }, [catalog, store, node, ports, drawn, runId]);

  useMeasured(node, `${names(ports.inputs)} ${names(ports.outputs)}`);
  return { ...ports, ...drawing };
}

/** Ports that come and go are measured anew. */
export function useMeasured(node: string, mark: string): void {
  const updateNode = useUpdateNodeInternals();
  // biome-ignore lint/correctness/useExhaustiveDependencies: `mark` says that something else is to be measured
  useLayoutEffect(() => updateNode(node), [node, mark, updateNode]);
}

function names(ports: readonly { name: string }[]): string {
  return ports.map((port) => port.name).join(",");
}
