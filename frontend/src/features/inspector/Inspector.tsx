import { useRef } from "react";
import { useDocument } from "@/document/context";
import { useSelection } from "@/session/selection";
import { EdgeInspector } from "./EdgeInspector";
import { EntryInspector } from "./EntryInspector";
import { LoopInspector } from "./LoopInspector";
import { ManyInspector } from "./ManyInspector";
import { NodeInspector } from "./NodeInspector";
import { PhaseInspector } from "./PhaseInspector";
import { useEscape } from "./useEscape";
import { useFieldFocus } from "./useFieldFocus";

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
