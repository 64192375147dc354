import { type RefObject, useEffect, useRef } from "react";
import { useDocument } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { EdgeInspector } from "./EdgeInspector";
import { EntryInspector } from "./EntryInspector";
import { LoopInspector } from "./LoopInspector";
import { ManyInspector } from "./ManyInspector";
import { NodeInspector } from "./NodeInspector";
import { PhaseInspector } from "./PhaseInspector";

/** The settings of what is selected; of the loop where nothing is. */
export function Inspector() {
  const panel = useRef<HTMLDivElement>(null);
  useFieldFocus(panel);
  useEscape(panel);
  return (
    <div ref={panel} className="flex h-full min-h-0 flex-col bg-surface">
      <Chosen />
    </div>
  );
}

function Chosen() {
  const { nodes, edges, phase, entry } = useSelection();
  const isKnown = useDocument(
    (state) => nodes.length === 1 && (nodes[0] ?? "") in state.document.nodes,
  );
  const [node] = nodes;
  const [edge] = edges;
  if (phase) return <PhaseInspector key={phase.join(".")} at={phase} />;
  if (entry) return <EntryInspector key={`${entry.list}.${entry.index}`} {...entry} />;
  if (nodes.length + edges.length > 1) return <ManyInspector />;
  if (node !== undefined && isKnown) return <NodeInspector key={node} id={node} />;
  if (edge !== undefined) return <EdgeInspector key={edge} edgeKey={edge} />;
  return <LoopInspector />;
}

/** Escape leads from a control of the settings back to the page, where single keys are commands again. */
function useEscape(panel: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { current } = panel;
    const leave = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || !(event.target instanceof HTMLElement)) return;
      event.target.blur();
      // The selection stays: another press lets go of it.
      event.preventDefault();
    };
    current?.addEventListener("keydown", leave);
    return () => current?.removeEventListener("keydown", leave);
  }, [panel]);
}

const FLASH = "field-flash";

/** Brings the field of a problem into view: the deepest one that is shown. */
function useFieldFocus(panel: RefObject<HTMLElement | null>): void {
  const focus = useSelection((state) => state.focus);
  useEffect(() => {
    if (!focus?.field) return;
    // Groups open and the panel may just have been filled: look after they did.
    const timer = setTimeout(() => {
      const found = deepest(panel.current, focus.field ?? "");
      if (!found) return;
      found.scrollIntoView({ block: "center" });
      found
        .querySelector<HTMLElement>(
          "input, select, textarea, [role=switch], [contenteditable=true]",
        )
        ?.focus({ preventScroll: true });
      found.classList.remove(FLASH);
      requestAnimationFrame(() => found.classList.add(FLASH));
    }, 120);
    return () => clearTimeout(timer);
  }, [focus, panel]);
}

function deepest(panel: HTMLElement | null, field: string): HTMLElement | null {
  const parts = field.split(".");
  for (let length = parts.length; length > 0; length -= 1) {
    const path = parts.slice(0, length).join(".");
    const found = panel?.querySelector<HTMLElement>(`[data-field="${CSS.escape(path)}"]`);
    if (found) return found;
  }
  return null;
}
