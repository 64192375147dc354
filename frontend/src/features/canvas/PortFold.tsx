import { useEffect, useRef, useState } from "react";
import type { InputPort, OutputPort } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { NodePort } from "./NodePort";
import { useMeasured } from "./useNodePorts";
import { usePointedAt } from "./usePointedAt";

interface PortFoldProps {
  node: string;
  side: "input" | "output";
  ports: readonly (InputPort | OutputPort)[];
  fitting: ReadonlySet<string> | null;
  isDrawnFrom: boolean;
  top: number;
  isReachable: boolean;
}

export function PortFold(props: PortFoldProps) {
  const { node, side, ports, fitting, isDrawnFrom, top, isReachable } = props;
  const { isPointedAt, pointing, forget } = usePointedAt();
  const [isChosen, setChosen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const isDrawing = fitting !== null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: an edge that begins or ends takes the pointer elsewhere
  useEffect(() => {
    forget();
    setChosen(false);
  }, [isDrawing, forget]);
  const shown =
    fitting === null || isDrawnFrom ? ports : ports.filter(({ name }) => fitting.has(name));
  const isOpen = !isDrawing ? isPointedAt || isChosen : isDrawnFrom || shown.length > 0;
  useMeasured(node, `${isOpen} ${shown.length}`);
  if (ports.length === 0) return null;
  const names = ports.map((port) => port.name).join(", ");

  return (
    <div
      ref={frame}
      role="group"
      aria-label={`Free ${side}s of ${node}`}
      className="port-fold nodrag"
      data-side={side}
      data-open={isOpen || undefined}
      style={{ top }}
      {...pointing}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !isChosen) return;
        event.stopPropagation();
        setChosen(false);
      }}
      onBlur={(event) => {
        if (!frame.current?.contains(event.relatedTarget)) setChosen(false);
      }}
    >
      <button
        type="button"
        className="port-fold-count"
        tabIndex={isReachable ? 0 : -1}
        aria-expanded={isOpen}
        aria-label={`${formatPlural(ports.length, `free ${side}`)} of ${node}: ${names}`}
        onClick={(event) => {
          event.stopPropagation();
          setChosen(!isChosen);
        }}
      >
        +{ports.length}
      </button>
      {isOpen ? (
        <div className="port-fold-list">
          {shown.map((port) => (
            <NodePort key={port.name} node={node} port={port} side={side} />
          ))}
        </div>
      ) : null}
    </div>
  );
}
