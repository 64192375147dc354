import { EdgeLabelRenderer } from "@xyflow/react";
import { GraduationCap } from "lucide-react";
import { bundleText } from "@/graph/compact";
import { bundleTitle, type EdgeKind } from "@/graph/edgeKinds";
import { useEdgeFacts } from "@/live/hooks";
import { useSelection } from "@/state/selection";
import { Tooltip } from "@/ui/Tooltip";
import { EdgeOptions } from "./EdgeOptions";

interface EdgeLabelProps {
  id: string;
  /** By what name a run tells of the edge, and the stage that gives its rows. */
  run: string;
  stage: string;
  /** Its options. */
  text: string;
  /** Rows a second in a run. */
  rate: string;
  kind: EdgeKind;
  color: string;
  isEvaluation: boolean;
  isSelected: boolean;
  /** All edges that are drawn as this one; none where it is alone. */
  bundle: readonly string[];
  isCompact: boolean;
  /** Its free place; without one it is seen only while its edge is selected, at the spare place. */
  place: [number, number] | null;
  spare: [number, number];
}

/** What an edge says of itself, on free ground: its options, and in a run what it delivers. */
export function EdgeLabel(props: EdgeLabelProps) {
  const { id, run, stage, rate, isEvaluation, isSelected, place, spare } = props;
  const { kind, color, bundle, isCompact } = props;
  const isLearning = kind === "learning";
  const count = bundle.length > 1 ? bundleText(bundle.length) : "";
  // From afar only what is learned is named; the options of others are read where they are chosen.
  const text = isCompact && !isLearning && !(isSelected && count === "") ? "" : props.text;
  if ((text === "" && rate === "" && count === "") || (place === null && !isSelected)) return null;
  const [x, y] = place ?? spare;
  const label = (
    <div
      className="loop-edge-label"
      data-edge={id}
      data-selected={isSelected || undefined}
      data-evaluation={isEvaluation || undefined}
      data-learning={isLearning || undefined}
      style={
        {
          transform: `translate(${x}px, ${y}px) scale(var(--unzoom)) translate(-50%, -50%)`,
          "--edge-color": color,
        } as React.CSSProperties
      }
      onPointerDown={() => useSelection.getState().select({ nodes: [], edges: [id] })}
    >
      {isLearning ? <GraduationCap size={13} role="img" aria-label="learned from" /> : null}
      <span>
        {text === "" ? null : <EdgeOptions id={id} kind={kind} isSelected={isSelected} />}
        {count === "" ? null : <span title={bundleTitle(bundle)}> {count}</span>}
        {text !== "" && rate !== "" ? " · " : ""}
        {rate}
      </span>
    </div>
  );
  return (
    <EdgeLabelRenderer>
      {rate === "" ? (
        label
      ) : (
        <Tooltip side="top" text={<EdgeFacts run={run} stage={stage} />}>
          {label}
        </Tooltip>
      )}
    </EdgeLabelRenderer>
  );
}

function EdgeFacts({ run, stage }: { run: string; stage: string }) {
  const text = useEdgeFacts(run, stage);
  return <span className="tabular whitespace-pre-line">{text}</span>;
}
