/** Which ports a node shows now: those in use, and for a reason those that are folded away. */
import { useConnection, useUpdateNodeInternals } from "@xyflow/react";
import { useLayoutEffect, useMemo } from "react";
import type { InputPort, OutputPort } from "@/api/types";
import { ofOtherModes } from "@/catalog/modes";
import { canConnect } from "@/document/canConnect";
import { useDocument, useOpenLoop } from "@/document/context";
import { portRef } from "@/document/edges";
import { shownPorts } from "@/document/geometry";
import type { PortRef } from "@/document/types";
import { useMode } from "@/document/useMode";

interface NodePorts {
  /** Those in use first, so that no edge moves when others join them. */
  inputs: readonly InputPort[];
  outputs: readonly OutputPort[];
  foldedInputs: readonly InputPort[];
  foldedOutputs: readonly OutputPort[];
  isOpen: boolean;
}

/** @param isWished whether all ports that the mode offers are to be seen, e.g. because the node is pointed at */
export function useNodePorts(node: string, isWished: boolean): NodePorts {
  const { catalog, store, runId } = useOpenLoop();
  const edges = useDocument((state) => state.document.edges);
  const kind = useDocument((state) => state.document.nodes[node]?.kind);
  const mode = useMode();
  const drawnFrom = useConnection((connection) =>
    connection.inProgress && connection.fromHandle
      ? `${connection.fromHandle.type} ${connection.fromHandle.nodeId}.${connection.fromHandle.id}`
      : null,
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: `edges` and `kind` are what is read of the document
  const shown = useMemo(() => {
    const { document } = store.getState();
    const ports = shownPorts(catalog, document, node);
    const folded = { foldedInputs: ports.foldedInputs, foldedOutputs: ports.foldedOutputs };
    const start = drawnFrom === null ? null : readStart(drawnFrom);
    if (runId === null && (isWished || start?.ref.node === node)) {
      const others = ofOtherModes(mode, kind ?? "").ports;
      const more = ports.foldedInputs.filter((port) => !others.has(port.name));
      const inputs = [...ports.inputs, ...more];
      return {
        inputs,
        outputs: [...ports.outputs, ...ports.foldedOutputs],
        ...folded,
        isOpen: true,
      };
    }
    if (!start) return { inputs: ports.inputs, outputs: ports.outputs, ...folded, isOpen: false };
    // Only what can take the edge joins the ports in use.
    const fits = (name: string, isInput: boolean) => {
      if (start.isOutput !== isInput) return false;
      const own = { node, port: name };
      const [from, to] = isInput ? [start.ref, own] : [own, start.ref];
      return canConnect(catalog, document, from, to).ok;
    };
    const inputs = ports.foldedInputs.filter((port) => fits(port.name, true));
    const outputs = ports.foldedOutputs.filter((port) => fits(port.name, false));
    return {
      inputs: [...ports.inputs, ...inputs],
      outputs: [...ports.outputs, ...outputs],
      ...folded,
      isOpen: inputs.length + outputs.length > 0,
    };
  }, [catalog, store, node, kind, edges, mode, isWished, drawnFrom, runId]);

  const rows = `${names(shown.inputs)} ${names(shown.outputs)}`;
  const updateNode = useUpdateNodeInternals();
  // biome-ignore lint/correctness/useExhaustiveDependencies: ports that come and go are measured anew
  useLayoutEffect(() => updateNode(node), [node, rows, updateNode]);
  return shown;
}

function names(ports: readonly { name: string }[]): string {
  return ports.map((port) => port.name).join(",");
}

function readStart(drawnFrom: string): { ref: PortRef; isOutput: boolean } {
  const [side, name = ""] = drawnFrom.split(" ");
  return { ref: portRef(name), isOutput: side === "source" };
}
