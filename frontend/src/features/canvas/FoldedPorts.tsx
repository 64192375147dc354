import type { InputPort, OutputPort } from "@/api/types";
import { formatPlural } from "@/lib/format";

interface FoldedPortsProps {
  inputs: readonly InputPort[];
  outputs: readonly OutputPort[];
}

/** How many ports without an edge a node has on either side. */
export function FoldedPorts({ inputs, outputs }: FoldedPortsProps) {
  if (inputs.length + outputs.length === 0) return null;
  return (
    <div className="loop-node-fold">
      <More ports={inputs} side="input" />
      <More ports={outputs} side="output" />
    </div>
  );
}

function More({ ports, side }: { ports: readonly { name: string }[]; side: string }) {
  if (ports.length === 0) return <span />;
  const names = ports.map((port) => port.name).join(", ");
  return (
    <span
      className="loop-node-more"
      title={`${formatPlural(ports.length, `free ${side}`)}: ${names}`}
    >
      +{ports.length}
    </span>
  );
}
