import { useEffect, useRef, useState } from "react";
import type { InputPort, OutputPort } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { classes } from "@/ui/classes";
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
  const edge = side === "input" ? "left-0" : "right-0";

  return (
    <div
      ref={frame}
      role="group"
      aria-label={`Free ${side}s of ${node}`}
      className={classes("nodrag absolute z-2 -mt-[9px]", edge)}
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
        className={classes(
          "relative block h-4.5 min-w-6.5 rounded-[9px] border border-line-strong border-dashed bg-surface px-[5px] text-center font-medium text-faint leading-4",
          side === "input" ? "-left-[13px]" : "-right-[13px]",
          isOpen && "invisible",
        )}
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
        <div
          className={classes(
            "port-fold-list absolute -top-1 min-w-24 rounded-2 bg-raised py-[3px] shadow-3 ring-1 ring-line-strong",
            edge,
          )}
        >
          {shown.map((port) => (
            <NodePort key={port.name} node={node} port={port} side={side} />
          ))}
        </div>
      ) : null}
    </div>
  );
}
