import { BaseEdge, type EdgeProps } from "@xyflow/react";
import { memo } from "react";
import type { PlanSummary } from "@/api/types";
import { outputPort } from "@/document/canConnect";
import { edgeIndex, portRef, runKey } from "@/document/edges";
import { bundleTitle, edgeLabel } from "@/graph/edgeKinds";
import { kindOf } from "@/graph/geometry";
import type { Route } from "@/graph/routes";
import { useEdgeActivity } from "@/live/hooks";
import { useDetail } from "@/state/canvas";
import { useDocument, useNodeColor, useOpenLoop, useSync } from "@/state/document/context";
import { portColor } from "@/ui/PortMark";
import { EdgeLabel } from "./EdgeLabel";

/** Which edges deliver nothing in any phase: the plan says so, weights alone do not. Pure. */
export function isAlwaysDead(plan: PlanSummary | null | undefined, key: string): boolean {
  const phases = plan?.phases ?? [];
  return phases.length > 0 && phases.every((phase) => phase.dead_edges.includes(key));
}

/** An edge in the colour of its type, of learning in the learner's, with its options and, in a run, its rate. */
export const LoopEdge = memo(function LoopEdge(props: EdgeProps) {
  const { id, selected, source, target } = props;
  const { catalog } = useOpenLoop();
  const edge = useDocument((state) => state.document.edges[edgeIndex(state.document, id)]);
  const type = useDocument((state) =>
    edge ? outputPort(catalog, state.document, portRef(edge.from))?.type : undefined,
  );
  const sourceKind = useDocument((state) => state.document.nodes[source]?.kind);
  const learner = useNodeColor(target);
  // The first stage of a node is the one that its outputs come from.
  const stage = `${source}.${kindOf(catalog, sourceKind)?.stages[0] ?? ""}`;
  const key = edge ? runKey(edge) : "";
  const live = useEdgeActivity(key, stage);
  const isDead = useSync((state) => isAlwaysDead(state.check?.plan, key));
  const route = props.data?.route as Route | undefined;
  const bundle = props.data?.bundle as readonly string[] | undefined;
  const compact = useDetail((state) => state.squeeze?.zoom ?? null);
  if (!edge || !route) return null;

  const portType = catalog.port_types[type ?? ""];
  const isLearning = route.kind === "learning";
  const color = isLearning ? learner : portColor(portType?.color);
  return (
    <>
      <path d={route.path} className="loop-edge-halo" />
      {bundle ? <title>{bundleTitle(bundle)}</title> : null}
      <BaseEdge
        id={id}
        path={route.path}
        interactionWidth={compact === null ? 18 : 14 / compact}
        className="loop-edge"
        data-kind={route.kind}
        data-handle={portType?.handle || undefined}
        data-selected={selected || undefined}
        data-active={live?.isActive || undefined}
        data-bottleneck={live?.isBottleneck || undefined}
        data-dead={isDead || undefined}
        data-bundle={bundle?.length}
        style={{ "--edge-color": color } as React.CSSProperties}
      />
      <EdgeLabel
        id={id}
        run={key}
        stage={stage}
        text={edgeLabel(catalog, edge, route.kind)}
        rate={compact === null ? (live?.label ?? "") : ""}
        bundle={bundle ?? []}
        isCompact={compact !== null}
        kind={route.kind}
        color={color}
        isEvaluation={live?.isEvaluation ?? false}
        isSelected={selected === true}
        place={route.label}
        spare={route.points[Math.floor(route.points.length / 2)] ?? [0, 0]}
      />
    </>
  );
});
