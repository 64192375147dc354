import { GraduationCap } from "lucide-react";
import { useMemo } from "react";
import { learningText, learningValues } from "@/graph/cardValues";
import { kindOf } from "@/graph/geometry";
import { formatPlural } from "@/lib/format";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { CardText } from "./CardText";

interface LearnBarProps {
  node: string;
  isReachable: boolean;
}

/** How a learner learns, in its colour: algorithm and rate are changed in place, its sign leads to the settings. */
export function LearnBar({ node, isReachable }: LearnBarProps) {
  const { catalog, store, runId } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[node]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `data` is what is read of the document
  const { algorithm, more, rate } = useMemo(
    () => learningValues(catalog, store.getState().document, node),
    [catalog, store, node, data],
  );
  const kind = kindOf(catalog, data?.kind);
  const text = data ? learningText(catalog, kind, data) : "";
  const said = text || "learns with default settings";
  const press = (event: React.MouseEvent) => {
    event.stopPropagation();
    useSelection.getState().select({ nodes: [node] });
    useSelection.getState().focusField(node, kind?.learning?.algorithm ?? "");
  };
  const isFixed = runId !== null || text === "";
  return (
    <div className="learn-bar">
      <button
        type="button"
        className="inline-flex flex-initial items-center gap-1.5 min-w-3.5 h-5.5 nodrag"
        tabIndex={isReachable ? 0 : -1}
        aria-label={`${node} learns: ${said}`}
        title={`${said}\nOpens its learning settings`}
        onClick={press}
      >
        <GraduationCap size={14} aria-hidden="true" />
        {isFixed ? <span className="truncate">{said}</span> : null}
      </button>
      {isFixed ? null : (
        <>
          {algorithm ? <CardText node={node} value={algorithm} isReachable={isReachable} /> : null}
          {more > 0 ? (
            <button
              type="button"
              className="inline-flex flex-initial items-center gap-1.5 min-w-3.5 h-5.5 nodrag"
              tabIndex={-1}
              aria-label={`${formatPlural(more, "more algorithm")} of ${node}`}
              onClick={press}
            >
              +{more}
            </button>
          ) : null}
          {algorithm && rate ? <span aria-hidden="true">·</span> : null}
          {rate ? (
            <>
              <span>lr</span>
              <CardText node={node} value={rate} isReachable={isReachable} />
            </>
          ) : null}
        </>
      )}
    </div>
  );
}
