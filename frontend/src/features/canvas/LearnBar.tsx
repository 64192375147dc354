import { GraduationCap } from "lucide-react";
import { useDocument, useOpenLoop } from "@/document/context";
import { kindOf } from "@/document/geometry";
import { learningText } from "@/document/telling";
import { useSelection } from "@/session/selection";

interface LearnBarProps {
  node: string;
  isReachable: boolean;
}

/** How a learner learns, in its colour; it leads to the settings of that. */
export function LearnBar({ node, isReachable }: LearnBarProps) {
  const { catalog } = useOpenLoop();
  const text = useDocument((state) => {
    const data = state.document.nodes[node];
    return data ? learningText(catalog, kindOf(catalog, data.kind), data) : "";
  });
  const field = useDocument(
    (state) => kindOf(catalog, state.document.nodes[node]?.kind)?.learning?.algorithm ?? "",
  );
  const said = text || "learns by default settings";
  return (
    <button
      type="button"
      className="learn-bar nodrag"
      tabIndex={isReachable ? 0 : -1}
      aria-label={`${node} learns: ${said}`}
      title={`${said}\nOpens its settings of learning`}
      onClick={(event) => {
        event.stopPropagation();
        useSelection.getState().select({ nodes: [node] });
        useSelection.getState().focusField(node, field);
      }}
    >
      <GraduationCap size={14} aria-hidden="true" />
      <span className="truncate">{said}</span>
    </button>
  );
}
