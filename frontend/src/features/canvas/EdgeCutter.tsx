import { useState } from "react";
import { toast } from "sonner";
import { formatPlural } from "@/lib/format";
import { useEdgeCutter } from "@/state/canvas";
import { removeItems } from "@/state/commands/nodes";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { useWindowEvent } from "@/ui/useWindowEvent";

/** While Alt is held, or once after the command, a drag over the canvas cuts the edges that it crosses. */
export function EdgeCutter() {
  const { store } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const isCalled = useEdgeCutter((state) => state.isOn);
  const isHeld = useAlt();
  const [cut, setCut] = useState<Cut | null>(null);
  useWindowEvent("keydown", ({ key }) => {
    if (isCalled && key === "Escape") useEdgeCutter.setState({ isOn: false });
  });
  if (isReadonly || !(isCalled || isHeld || cut)) return null;

  const end = () => {
    const edges = cut ? crossedEdges(cut) : [];
    setCut(null);
    useEdgeCutter.setState({ isOn: false });
    if (edges.length === 0) return;
    const label = `Cut ${formatPlural(edges.length, "connection")}`;
    store.dispatch(removeItems, { nodes: [], edges }, { label });
    toast(label, { id: "edge-cutter" });
  };
  return (
    <div
      className="absolute inset-0 z-6 cursor-crosshair touch-none"
      data-testid="edge-cutter"
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        const { clientX: x, clientY: y } = event;
        setCut({ x1: x, y1: y, x2: x, y2: y });
      }}
      onPointerMove={(event) => {
        if (cut) setCut({ ...cut, x2: event.clientX, y2: event.clientY });
      }}
      onPointerUp={end}
      onPointerCancel={() => setCut(null)}
    >
      {cut ? (
        <svg
          className="pointer-events-none fixed inset-0 size-full"
          aria-hidden="true"
          role="presentation"
        >
          <line className="stroke-2 stroke-error" strokeDasharray="6 4" {...cut} />
        </svg>
      ) : null}
      {isCalled && !cut ? (
        <p className="absolute bottom-3 left-1/2 -translate-x-1/2 rounded-[8px] border border-line bg-raised px-3 py-1.5 text-[13px] shadow-2">
          Drag across connections to cut them. Esc cancels.
        </p>
      ) : null}
    </div>
  );
}

function useAlt(): boolean {
  const [isHeld, set] = useState(false);
  const note = (event: KeyboardEvent) => set(event.altKey && !event.ctrlKey && !event.metaKey);
  useWindowEvent("keydown", note);
  useWindowEvent("keyup", note);
  useWindowEvent("blur", () => set(false));
  return isHeld;
}

interface Cut {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
}

const STEP = 8;

function crossedEdges(cut: Cut): string[] {
  const keys: string[] = [];
  for (const edge of document.querySelectorAll(".react-flow__edge")) {
    const key = edge.getAttribute("data-id");
    const line = edge.querySelector<SVGPathElement>(".loop-edge");
    if (key && line && isCrossed(line, cut)) keys.push(key);
  }
  return keys;
}

function isCrossed(line: SVGPathElement, cut: Cut): boolean {
  const matrix = line.getScreenCTM();
  if (!matrix) return false;
  const length = line.getTotalLength();
  const steps = Math.max(1, Math.ceil((length * matrix.a) / STEP));
  let before = line.getPointAtLength(0).matrixTransform(matrix);
  for (let step = 1; step <= steps; step += 1) {
    const now = line.getPointAtLength((length * step) / steps).matrixTransform(matrix);
    if (crosses(cut, { x1: before.x, y1: before.y, x2: now.x, y2: now.y })) return true;
    before = now;
  }
  return false;
}

function crosses(a: Cut, b: Cut): boolean {
  const side = (line: Cut, x: number, y: number) =>
    Math.sign((line.x2 - line.x1) * (y - line.y1) - (line.y2 - line.y1) * (x - line.x1));
  return side(a, b.x1, b.y1) !== side(a, b.x2, b.y2) && side(b, a.x1, a.y1) !== side(b, a.x2, a.y2);
}
