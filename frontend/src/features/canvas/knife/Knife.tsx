import { useEffect, useState } from "react";
import { toast } from "sonner";
import { removeItems } from "@/document/commands/removeItems";
import { useDocument, useOpenLoop } from "@/document/context";
import { formatPlural } from "@/lib/format";
import { useKnife } from "@/session/knife";
import { type Cut, crossedEdges } from "./crossed";

/** While Alt is held, or once after the command, a drag over the canvas cuts the edges that it crosses. */
export function Knife() {
  const { store } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const isCalled = useKnife((state) => state.isOn);
  const isHeld = useAlt();
  const [cut, setCut] = useState<Cut | null>(null);
  useEffect(() => {
    if (!isCalled) return;
    const leave = (event: KeyboardEvent) => {
      if (event.key === "Escape") useKnife.setState({ isOn: false });
    };
    window.addEventListener("keydown", leave);
    return () => window.removeEventListener("keydown", leave);
  }, [isCalled]);
  if (isReadonly || !(isCalled || isHeld || cut)) return null;

  const end = () => {
    const edges = cut ? crossedEdges(cut) : [];
    setCut(null);
    useKnife.setState({ isOn: false });
    if (edges.length === 0) return;
    const label = `Cut ${formatPlural(edges.length, "connection")}`;
    store.getState().dispatch(removeItems, { nodes: [], edges }, { label });
    toast(label, { id: "knife" });
  };
  return (
    <div
      className="canvas-knife"
      data-testid="knife"
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
        <svg aria-hidden="true" role="presentation">
          <line {...cut} />
        </svg>
      ) : null}
      {isCalled && !cut ? <p>Drag across connections to cut them. Esc cancels.</p> : null}
    </div>
  );
}

function useAlt(): boolean {
  const [isHeld, set] = useState(false);
  useEffect(() => {
    const note = (event: KeyboardEvent) => set(event.altKey && !event.ctrlKey && !event.metaKey);
    const forget = () => set(false);
    window.addEventListener("keydown", note);
    window.addEventListener("keyup", note);
    window.addEventListener("blur", forget);
    return () => {
      window.removeEventListener("keydown", note);
      window.removeEventListener("keyup", note);
      window.removeEventListener("blur", forget);
    };
  }, []);
  return isHeld;
}
