import { Handle, Position } from "@xyflow/react";
import { GraduationCap } from "lucide-react";
import { memo } from "react";
import type { InputPort, OutputPort } from "@/api/types";
import { asItTeaches } from "@/document/canConnect";
import { edgeFacts, portText } from "@/document/edges";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { classes } from "@/ui/classes";
import { PortMark } from "@/ui/PortMark";
import { portTitle } from "./PortHandle";
import { usePortFit } from "./usePortFit";

interface NodePortProps {
  node: string;
  port: InputPort | OutputPort;
  side: "input" | "output";
}

export const NodePort = memo(function NodePort({ node, port, side }: NodePortProps) {
  const { catalog } = useOpenLoop();
  const name = portText({ node, port: port.name });
  const isInput = side === "input";
  const isConnected = useDocument((state) => {
    const facts = edgeFacts(state.document.edges);
    return (isInput ? facts.inputs : facts.outputs).has(name);
  });
  const isReadonly = useDocument((state) => state.isReadonly);
  const { blocked, isOpen } = usePortFit(node, port.name, isInput);
  const type = catalog.port_types[port.type];
  const isTeaching = useDocument(
    (state) =>
      "teaching" in port && asItTeaches(catalog, state.document.nodes[node], port).teaching,
  );

  return (
    <div
      className={classes(
        "node-port relative flex h-6 items-center gap-1 px-[13px] font-medium text-muted transition-opacity duration-100 data-blocked:opacity-28 data-open:font-semibold data-open:text-text",
        !isInput && "flex-row-reverse",
      )}
      data-blocked={blocked !== null || undefined}
      data-open={isOpen || undefined}
      data-connected={isConnected || undefined}
      title={portTitle(port, blocked, isTeaching)}
    >
      <Handle
        id={port.name}
        type={isInput ? "target" : "source"}
        position={isInput ? Position.Left : Position.Right}
        isConnectable={!isReadonly}
        role="img"
        aria-label={`${side} ${name}`}
      >
        <PortMark type={type} isConnected={isConnected} />
      </Handle>
      <span className="whitespace-nowrap">{port.name}</span>
      {isTeaching ? (
        <GraduationCap
          size={12}
          className="flex-none text-muted"
          role="img"
          aria-label="teaching port"
        />
      ) : null}
    </div>
  );
});
