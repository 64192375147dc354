import { Position } from "@xyflow/react";
import { Ban, Flame, Hourglass } from "lucide-react";
import { type CSSProperties, Fragment, useMemo } from "react";
import { type CardValue, cardValues, learningText } from "@/graph/cardValues";
import type { Dot } from "@/graph/compact";
import { kindOf } from "@/graph/geometry";
import { formatBrief, formatName } from "@/lib/format";
import { useLive } from "@/live/hooks";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { KindIcon } from "@/ui/KindIcon";
import { portColor } from "@/ui/PortMark";
import { BusyRing } from "./BusyRing";
import { type MainMetric, mainMetric } from "./mainMetric";
import { PortHandle } from "./PortHandle";
import { paceOf } from "./pace";
import { mainRate, stageRates } from "./stageText";
import { summaryValues } from "./summary";
import { useMeasured } from "./useNodePorts";

const MAX_VALUES = 3;

export function CompactCard({ node, dots }: { node: string; dots: readonly Dot[] }) {
  const { catalog, store, runId } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[node]);
  const { title, number, values, isTold } = useMemo(() => {
    const { document } = store.getState();
    const kind = kindOf(catalog, data?.kind);
    const values = cardValues(catalog, document, node);
    const learns = data ? learningText(catalog, kind, data) : "";
    const words = [kind?.title ?? formatName(data?.kind ?? "")];
    words.push(...summaryValues(catalog, document, node).map(({ text }) => text));
    const lines = [
      node,
      words.join(" · "),
      ...values.map(({ label, text }) => `${label}: ${text}`),
    ];
    return {
      values: values.slice(0, MAX_VALUES),
      title: [...lines, ...(learns ? [`learns: ${learns}`] : [])].join("\n"),
      number: settingNumber(values, learns),
      isTold: learns === "",
    };
  }, [catalog, store, node, data]);
  useMeasured(node, dots.map(({ port, isTarget, top }) => `${port} ${isTarget} ${top}`).join(","));
  const kind = kindOf(catalog, data?.kind);
  return (
    <>
      <div className="compact-card" title={title}>
        <div className="compact-card-body">
          <span className="loop-node-icon">
            <KindIcon name={kind?.icon} />
            {runId ? <BusyRing node={node} /> : null}
          </span>
          <span className="compact-card-words">
            <span className="compact-card-name">
              {node.split("_").map((word, place) => (
                <Fragment key={place}>
                  {place > 0 ? (
                    <>
                      _<wbr />
                    </>
                  ) : null}
                  {word}
                </Fragment>
              ))}
            </span>
            {runId ? (
              <LiveNumber node={node} />
            ) : (
              <span className="compact-card-number" data-told={isTold || undefined}>
                {number}
              </span>
            )}
          </span>
          {runId ? <PaceSign node={node} /> : null}
        </div>
        {runId || values.length === 0 ? null : (
          <dl className="compact-card-more">
            {values.map(({ label, text }) => (
              <div key={label}>
                <dt>{label}</dt>
                <dd>{text}</dd>
              </div>
            ))}
          </dl>
        )}
      </div>
      {dots.map((dot) => (
        <CompactDot key={`${dot.port} ${dot.isTarget}`} node={node} dot={dot} />
      ))}
    </>
  );
}

function LiveNumber({ node }: { node: string }) {
  const { catalog } = useOpenLoop();
  const metric = useLive("series", (live) => liveNumber(mainMetric(catalog, live, node)), "");
  const rate = useLive(
    "gauges",
    (live) => mainRate(stageRates(live.state.gauges, node)).replace(/ \w+\//, "/"),
    "",
  );
  const [value = "", name = ""] = metric.split("|");
  return (
    <span className="compact-card-number tabular" title={name ? `${name}: ${value}` : rate}>
      {value || rate}
    </span>
  );
}

function PaceSign({ node }: { node: string }) {
  const state = useLive(
    "gauges",
    (live) => {
      const pace = paceOf(live, node);
      return pace.bottleneck === null ? pace.state : "bottleneck";
    },
    "none",
  );
  if (state === "bottleneck") {
    return (
      <span className="compact-card-pace" data-state={state} title="Most of the step's time">
        <Flame role="img" aria-label={`${node} is the bottleneck`} />
      </span>
    );
  }
  if (state !== "starved" && state !== "blocked") return null;
  const [Sign, word] = state === "starved" ? [Hourglass, "waits for rows"] : [Ban, "is blocked"];
  return (
    <span className="compact-card-pace" data-state={state} title={word}>
      <Sign role="img" aria-label={`${node} ${word}`} />
    </span>
  );
}

function CompactDot({ node, dot: { port, isTarget, top } }: { node: string; dot: Dot }) {
  return (
    <PortHandle
      node={node}
      name={port}
      isTarget={isTarget}
      id={port}
      position={isTarget ? Position.Left : Position.Right}
      className="compact-dot"
      style={(type) => ({ top, "--port-color": portColor(type?.color) }) as CSSProperties}
    />
  );
}

/** Of a learner how it learns; else the first number that its kind calls telling, with what it counts. */
export function settingNumber(values: readonly CardValue[], learning: string): string {
  if (learning !== "") return learning.split(" · ")[0] ?? "";
  const found = values.find(({ text }) => /^[\d.,]+$/.test(text)) ?? values[0];
  if (!found) return "";
  return /^[\d.,]+$/.test(found.text) ? `${found.text} ${found.label}` : found.text;
}

/** Newest value and title of a metric, as one comparable text. */
function liveNumber(metric: MainMetric | null): string {
  if (metric === null || metric.series.last === undefined) return "";
  return `${formatBrief(metric.series.last?.value)}|${metric.title}`;
}
