import { BaseEdge, EdgeLabelRenderer, type EdgeProps } from "@xyflow/react";
import { GraduationCap } from "lucide-react";
import { Fragment, memo, useState } from "react";
import type { PlanSummary } from "@/api/types";
import { outputPort } from "@/document/canConnect";
import { edgeIndex, portRef, runKey } from "@/document/edges";
import { bundleText } from "@/graph/compact";
import {
  bundleTitle,
  type EdgeKind,
  type EdgeOption,
  edgeLabel,
  edgeOptions,
  learningName,
} from "@/graph/edgeKinds";
import { kindOf } from "@/graph/geometry";
import type { Route } from "@/graph/routes";
import { useEdgeActivity, useEdgeFacts } from "@/live/hooks";
import { useDetail } from "@/state/canvas";
import { setEdgeOption } from "@/state/commands/edges";
import { useDocument, useNodeColor, useOpenLoop, useSync } from "@/state/document/context";
import { useIsEdgeDimmed } from "@/state/lit";
import { select } from "@/state/selection";
import { classes } from "@/ui/classes";
import { portColor } from "@/ui/PortMark";
import { Tooltip } from "@/ui/Tooltip";
import { ValueField } from "./ValueField";

/** Which edges deliver nothing in any phase: the plan says so, weights alone do not. Pure. */
export function isAlwaysDead(plan: PlanSummary | null | undefined, key: string): boolean {
  const phases = plan?.phases ?? [];
  return phases.length > 0 && phases.every((phase) => phase.dead_edges.includes(key));
}

interface LineFacts {
  isCompact: boolean;
  isBundle: boolean;
  isHandle: boolean;
  isActive: boolean;
}

/** How wide lines are, in pixels of the window: between whole cards, and between compact ones. */
const WIDTHS: Record<EdgeKind, [number, number]> = {
  data: [2, 1.5],
  tie: [2, 1.5],
  measure: [1.25, 1.1],
  learning: [2.2, 1.8],
};
const BUNDLE_WIDTH = 2.4;

function lineLook(kind: EdgeKind, facts: LineFacts) {
  const isBundle = facts.isBundle && kind !== "learning";
  const width = isBundle ? BUNDLE_WIDTH : WIDTHS[kind][facts.isCompact ? 1 : 0];
  return { "--edge-width": `${width}px`, "--edge-dashes": dashesOf(kind, facts) };
}

function dashesOf(kind: EdgeKind, { isCompact, isHandle, isActive }: LineFacts): string {
  const afar = (length: number) => `calc(${length}px * var(--unzoom))`;
  if (kind === "learning") return isCompact ? `0.1px ${afar(4)}` : "0.1px 5px";
  if (isActive) return isCompact ? `${afar(4)} ${afar(4)}` : "5px 6px";
  if (isHandle) return isCompact ? `${afar(5)} ${afar(3)}` : "6px 4px";
  return "none";
}

const LEARNING =
  "border-[color-mix(in_srgb,var(--edge-color)_35%,var(--line))] text-(--edge-color)";

export const LoopEdge = memo(function LoopEdge(props: EdgeProps) {
  const { id, selected } = props;
  const { catalog } = useOpenLoop();
  const edge = useDocument((state) => state.document.edges[edgeIndex(state.document, id)]);
  const type = useDocument((state) =>
    edge ? outputPort(catalog, state.document, portRef(edge.from))?.type : undefined,
  );
  const source = edge ? portRef(edge.from).node : "";
  const target = edge ? portRef(edge.to).node : "";
  const sourceKind = useDocument((state) => state.document.nodes[source]?.kind);
  const learner = useNodeColor(target);
  const stage = `${source}.${kindOf(catalog, sourceKind)?.stages[0] ?? ""}`;
  const key = edge ? runKey(edge) : "";
  const live = useEdgeActivity(key, stage);
  const isDead = useSync((state) => isAlwaysDead(state.check?.plan, key));
  const route = props.data?.route as Route | undefined;
  const bundle = props.data?.bundle as readonly string[] | undefined;
  const isDimmed = useIsEdgeDimmed(bundle ?? [id]);
  const compact = useDetail((state) => state.squeeze?.zoom ?? null);
  if (!edge || !route) return null;

  const portType = catalog.port_types[type ?? ""];
  const isLearning = route.kind === "learning";
  const isCompact = compact !== null;
  const count = bundle && bundle.length > 1 ? bundleText(bundle.length) : "";
  // From afar only what is learned is named; the options of others are read where they are chosen.
  const isNamed = !isCompact || isLearning || (selected === true && count === "");
  const text = isNamed ? edgeLabel(catalog, edge, route.kind) : "";
  const rate = isCompact ? "" : (live?.label ?? "");
  const hasLabel = text + rate + count !== "" && (route.label !== null || selected);
  // Without a free place a label is seen only while its edge is selected.
  const [x, y] = route.label ?? route.points[Math.floor(route.points.length / 2)] ?? [0, 0];
  const color = { "--edge-color": isLearning ? learner : portColor(portType?.color) };
  const label = (
    <div
      className={classes(
        "loop-edge-label absolute inline-flex h-5 cursor-pointer items-center gap-1 whitespace-nowrap rounded-[10px] border bg-surface px-[7px] font-medium text-xs/4.5 tabular-nums pointer-events-auto [&_.card-value-field]:h-4.5 [&_.card-value-field]:w-16 [&_.card-value-text]:text-inherit",
        "compact:top-0 compact:left-0 compact:h-4 compact:origin-top-left compact:gap-[3px] compact:px-[5px] compact:text-2xs/3.5",
        live?.isEvaluation && "border-dashed",
        selected ? "border-accent text-text" : isLearning ? LEARNING : "border-line text-muted",
      )}
      data-edge={id}
      data-dimmed={isDimmed || undefined}
      style={
        {
          transform: `translate(${x}px, ${y}px) scale(var(--unzoom)) translate(-50%, -50%)`,
          ...color,
        } as React.CSSProperties
      }
      onPointerDown={() => select({ nodes: [], edges: [id] })}
    >
      {isLearning ? <GraduationCap size={13} role="img" aria-label="learned from" /> : null}
      <span>
        {text === "" ? null : (
          <EdgeOptions id={id} kind={route.kind} isSelected={selected === true} />
        )}
        {count === "" ? null : <span title={bundleTitle(bundle ?? [])}> {count}</span>}
        {text !== "" && rate !== "" ? " · " : ""}
        {rate}
      </span>
    </div>
  );
  return (
    <>
      <path
        d={route.path}
        className="fill-none stroke-[5.5] stroke-canvas compact:stroke-[calc(4px*var(--unzoom))]"
      />
      {bundle ? <title>{bundleTitle(bundle)}</title> : null}
      <BaseEdge
        id={id}
        path={route.path}
        interactionWidth={isCompact ? 14 / compact : 18}
        className="loop-edge"
        strokeLinecap={isLearning ? "round" : undefined}
        data-selected={selected || undefined}
        data-active={live?.isActive || undefined}
        data-bottleneck={live?.isBottleneck || undefined}
        data-dead={isDead || undefined}
        data-dimmed={isDimmed || undefined}
        style={
          {
            ...color,
            ...lineLook(route.kind, {
              isCompact,
              isBundle: bundle !== undefined,
              isHandle: portType?.handle ?? false,
              isActive: live?.isActive ?? false,
            }),
          } as React.CSSProperties
        }
      />
      {hasLabel ? (
        <EdgeLabelRenderer>
          {rate === "" ? (
            label
          ) : (
            <Tooltip side="top" text={<EdgeFacts run={key} stage={stage} />}>
              {label}
            </Tooltip>
          )}
        </EdgeLabelRenderer>
      ) : null}
    </>
  );
});

function EdgeFacts({ run, stage }: { run: string; stage: string }) {
  const text = useEdgeFacts(run, stage);
  return <span className="tabular whitespace-pre-line">{text}</span>;
}

interface EdgeOptionsProps {
  id: string;
  kind: EdgeKind;
  isSelected: boolean;
}

export function EdgeOptions({ id, kind, isSelected }: EdgeOptionsProps) {
  const { catalog } = useOpenLoop();
  const edge = useDocument((state) => state.document.edges[edgeIndex(state.document, id)]);
  const isReadonly = useDocument((state) => state.isReadonly);
  if (!edge) return null;
  const name = learningName(edge, kind);
  const called = typeof edge.id === "string" ? edge.id : portRef(edge.to).port;
  return (
    <>
      {name}
      {edgeOptions(catalog, edge, isSelected && kind === "learning" && !isReadonly).map(
        (option, place) => (
          <Fragment key={option.name}>
            {place > 0 || name !== "" ? " · " : ""}
            {option.field.shape === "number" && !isReadonly ? (
              <NumberOption id={id} option={option} called={called} />
            ) : (
              option.text
            )}
          </Fragment>
        ),
      )}
    </>
  );
}

function NumberOption({ id, option, called }: { id: string; option: EdgeOption; called: string }) {
  const { store } = useOpenLoop();
  const [isEditing, setEditing] = useState(false);
  const { name, field, value, text } = option;
  if (!isEditing || field.shape !== "number") {
    return (
      <button
        type="button"
        className="card-value-text nodrag nopan"
        tabIndex={-1}
        aria-label={`${name} of ${id}: ${text}`}
        title="Change it here"
        onClick={(event) => {
          event.stopPropagation();
          select({ nodes: [], edges: [id] });
          setEditing(true);
        }}
      >
        {text}
      </button>
    );
  }
  return (
    <ValueField
      label={`${name} of ${id}`}
      field={field}
      value={value}
      onWrite={(next) => {
        setEditing(false);
        if (next === value) return;
        const change = { key: id, path: [name], value: next };
        store.dispatch(setEdgeOption, change, { label: `Change ${name} of ${called}` });
      }}
      onCancel={() => setEditing(false)}
    />
  );
}
