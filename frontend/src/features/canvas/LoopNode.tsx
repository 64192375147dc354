import { type NodeProps, Position } from "@xyflow/react";
import { ArrowUp, GraduationCap } from "lucide-react";
import { Fragment, memo, useMemo, useState } from "react";
import type { Catalog } from "@/api/types";
import { isLearner } from "@/document/identities";
import type { LoopDocument } from "@/document/types";
import {
  type CardValue,
  cardValues,
  learningText,
  learningValues,
  summaryValues,
} from "@/graph/cardValues";
import type { Dot } from "@/graph/compact";
import { foldTop, kindOf } from "@/graph/geometry";
import type { Socket } from "@/graph/sockets";
import { softColor } from "@/lib/colors";
import { formatName, formatPlural } from "@/lib/format";
import { useNodeActivity } from "@/live/hooks";
import { useDetail } from "@/state/canvas";
import { useDocument, useNodeColor, useOpenLoop } from "@/state/document/context";
import { useIsDimmed } from "@/state/lit";
import { showField } from "@/state/selection";
import { PortMark } from "@/ui/PortMark";
import { CardText } from "./CardText";
import { CompactCard } from "./CompactCard";
import { socketHandle } from "./handles";
import { LiveBadge, useHasFailed } from "./LiveBadge";
import { LiveNodeFooter } from "./LiveNodeFooter";
import { NodeBadge } from "./NodeBadge";
import { NodeIcon } from "./NodeIcon";
import { NodePort } from "./NodePort";
import { PortFold } from "./PortFold";
import { PortHandle } from "./PortHandle";
import { useMeasured, useNodePorts } from "./useNodePorts";
import type { CardData } from "./useSockets";

export function CardHeader({ node, isReachable }: { node: string; isReachable: boolean }) {
  const { catalog, runId } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[node]);
  const values = useOfNode(node, summaryValues);
  if (!data) return null;
  const kind = kindOf(catalog, data.kind);
  const title = kind?.title ?? formatName(data.kind);
  return (
    <header className="flex flex-none items-center gap-[9px] h-11.5 pr-2.5 pl-3" title={kind?.help}>
      <NodeIcon node={node} icon={kind?.icon} />
      <span className="min-w-0 flex-1">
        <span
          className="loop-node-name -my-0.5 block truncate py-0.5 font-semibold text-base/[17px] tracking-[-0.005em]"
          title={node}
        >
          {node}
        </span>
        <span
          className="loop-node-kind block truncate text-muted leading-[15px] has-[.card-value-text]:flex has-[.card-value-text]:whitespace-pre"
          title={[title, ...values.map(({ text }) => text)].join(" · ")}
        >
          {title}
          {values.map((value) => (
            <Fragment key={value.text}>
              {" · "}
              {value.field && !runId ? (
                <CardText node={node} value={value} isReachable={isReachable} />
              ) : (
                value.text
              )}
            </Fragment>
          ))}
        </span>
      </span>
    </header>
  );
}

export function CardValues({ node, isReachable }: { node: string; isReachable: boolean }) {
  const values = useOfNode(node, cardValues);
  if (values.length === 0) return null;
  return (
    <div className="flex-none border-t border-line px-1.5 py-[5px]">
      {values.map((value) => (
        <CardValueRow key={value.label} node={node} value={value} isReachable={isReachable} />
      ))}
    </div>
  );
}

interface CardValueRowProps {
  node: string;
  value: CardValue;
  isReachable: boolean;
}

function CardValueRow({ node, value, isReachable }: CardValueRowProps) {
  const [isEditing, setEditing] = useState(false);
  return (
    <div
      className="relative flex h-6.5 items-center justify-between gap-2 whitespace-nowrap rounded-1 px-1.5 text-muted data-editing:bg-accent-soft"
      data-editing={isEditing || undefined}
    >
      <span>{value.label}</span>
      <CardText node={node} value={value} isReachable={isReachable} onEditing={setEditing} />
    </div>
  );
}

const NO_SOCKETS: readonly Socket[] = [];
const NO_DOTS: readonly Dot[] = [];

export const LoopNode = memo(function LoopNode({ id, selected, data: drawn }: NodeProps) {
  const { catalog, runId } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[id]);
  const color = useNodeColor(id);
  const activity = useNodeActivity(id);
  const hasFailed = useHasFailed(id);
  const learns = useDocument((state) => isLearner(catalog, state.document, id));
  const isCompact = useDetail((state) => state.squeeze !== null);
  const isDimmed = useIsDimmed(id);
  if (!data) return null;
  const kind = kindOf(catalog, data.kind);
  const { sockets = NO_SOCKETS, dots = NO_DOTS } = drawn as Partial<CardData>;
  return (
    <article
      className="loop-node"
      data-selected={selected || undefined}
      data-activity={activity}
      data-failed={hasFailed || undefined}
      data-unknown={kind === undefined || undefined}
      data-learns={learns || undefined}
      data-dimmed={isDimmed || undefined}
      style={{ "--node-color": color, "--node-soft": softColor(color) } as React.CSSProperties}
      aria-label={`${id}, ${kind?.title ?? data.kind}`}
    >
      {isCompact ? (
        <CompactCard node={id} dots={dots} />
      ) : (
        <WholeCard node={id} learns={learns} isReachable={selected} />
      )}
      {runId ? <LiveBadge node={id} /> : <NodeBadge node={id} />}
      <CardSockets node={id} sockets={sockets} />
    </article>
  );
});

const SIDES = ["input", "output"] as const;

interface WholeCardProps {
  node: string;
  learns: boolean;
  isReachable: boolean;
}

function WholeCard({ node, learns, isReachable }: WholeCardProps) {
  const { runId } = useOpenLoop();
  const ports = useNodePorts(node);
  const rows = Math.max(ports.inputs.length, ports.outputs.length);
  const fold = { node, fitting: ports.fitting, top: foldTop(rows), isReachable };
  const hasFold = ports.foldedInputs.length + ports.foldedOutputs.length > 0;

  return (
    <>
      <CardHeader node={node} isReachable={isReachable} />
      <div
        className="flex flex-none justify-between data-fold:pb-7 not-data-fold:has-[.node-port]:pb-1.5"
        data-fold={hasFold || undefined}
      >
        {SIDES.map((side) => (
          <div key={side}>
            {ports[`${side}s`].map((port) => (
              <NodePort key={port.name} node={node} port={port} side={side} />
            ))}
          </div>
        ))}
      </div>
      {SIDES.map((side) => (
        <PortFold
          key={side}
          {...fold}
          side={side}
          ports={side === "input" ? ports.foldedInputs : ports.foldedOutputs}
          isDrawnFrom={ports.drawnFrom === `${side}s`}
        />
      ))}
      {runId ? (
        <LiveNodeFooter node={node} />
      ) : (
        <CardValues node={node} isReachable={isReachable} />
      )}
      {learns ? <LearnBar node={node} isReachable={isReachable} /> : null}
    </>
  );
}

export function LearnBar({ node, isReachable }: { node: string; isReachable: boolean }) {
  const { catalog, runId } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[node]);
  const learning = useOfNode(node, learningValues);
  const { algorithm, more, rate } = learning;
  const kind = kindOf(catalog, data?.kind);
  const text = learningText(learning);
  const said = text || "learns with default settings";
  const press = (event: React.MouseEvent) => {
    event.stopPropagation();
    showField(node, kind?.learning?.algorithm ?? "");
  };
  const isFixed = runId !== null || text === "";
  return (
    <div className="learn-bar mt-auto flex h-7.5 w-full flex-none items-center gap-1.5 whitespace-nowrap rounded-b-3 bg-(--node-soft) px-[11px] text-left font-medium text-(--node-color)">
      <button
        type="button"
        className="inline-flex flex-initial items-center gap-1.5 min-w-3.5 h-5.5 nodrag"
        tabIndex={isReachable ? 0 : -1}
        aria-label={`${node} learns: ${said}`}
        title={`${said}\nOpens its learning settings`}
        onClick={press}
      >
        <GraduationCap size={14} className="flex-none" aria-hidden="true" />
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

/** What is read of a node; read again when the node changes, and not when others do. */
function useOfNode<T>(
  node: string,
  derive: (catalog: Catalog, document: LoopDocument, node: string) => T,
): T {
  const { catalog, store } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[node]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `data` is what is read of the document
  return useMemo(
    () => derive(catalog, store.getState().document, node),
    [catalog, store, node, data],
  );
}

/** Ends of learning edges and ties at the bottom or top of a card: one for each edge. */
function CardSockets({ node, sockets }: { node: string; sockets: readonly Socket[] }) {
  useMeasured(node, sockets.map(({ key, x, side }) => `${key} ${x} ${side}`).join(","));
  return sockets.map(({ key, port: name, isTarget, isTie, side, x }, index) => {
    const isSame = (one: Socket) => one.port === name && one.isTarget === isTarget;
    return (
      <PortHandle
        key={`${key} ${isTarget}`}
        node={node}
        name={name}
        isTarget={isTarget}
        id={socketHandle(name, key)}
        // The first socket of its port has the label of the port, without the edge.
        mark={sockets.findIndex(isSame) === index ? "" : `, ${key}`}
        position={side === "top" ? Position.Top : Position.Bottom}
        className="card-socket data-blocked:opacity-28"
        style={() => ({ left: x })}
      >
        {(port, type) =>
          isTarget && "teaching" in port && port.teaching && !isTie ? (
            <span className="pointer-events-none box-content inline-flex size-[15px] items-center justify-center rounded-full border-2 border-surface bg-(--node-color) text-surface">
              <ArrowUp size={11} strokeWidth={3} aria-hidden="true" />
            </span>
          ) : (
            <PortMark type={type} />
          )
        }
      </PortHandle>
    );
  });
}
