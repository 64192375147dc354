import { Position } from "@xyflow/react";
import { Ban, Flame, Hourglass, type LucideIcon } from "lucide-react";
import { type CSSProperties, Fragment, useMemo } from "react";
import {
  type CardValue,
  cardValues,
  learningText,
  learningValues,
  summaryValues,
} from "@/graph/cardValues";
import type { Dot } from "@/graph/compact";
import { kindOf } from "@/graph/geometry";
import { formatBrief, formatName } from "@/lib/format";
import { useLive } from "@/live/hooks";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { classes } from "@/ui/classes";
import { portColor } from "@/ui/PortMark";
import { mainMetric } from "./mainMetric";
import { NodeIcon } from "./NodeIcon";
import { PortHandle } from "./PortHandle";
import { paceOf } from "./pace";
import { mainRate, stageRates } from "./stageText";
import { useMeasured } from "./useNodePorts";

const MAX_VALUES = 3;

/** A narrow card has a smaller icon; a narrower or lower one has it above its name, or only the colour at its side. */
const ICON = classes(
  "size-5.5 [&>.busy-ring]:-inset-1 [&>.busy-ring]:size-7.5 [&>.lucide]:size-3.5",
  "card-narrow:size-4 card-narrow:bg-transparent card-narrow:[&>.busy-ring]:-inset-0.5 card-narrow:[&>.busy-ring]:size-5",
  "card-lower:size-4 card-lower:bg-transparent card-lower:[&>.busy-ring]:-inset-px card-lower:[&>.busy-ring]:size-4.5",
  "card-small:hidden card-lower:[&>.lucide]:size-[11px] card-lower-narrow:hidden",
  "card-mark:inline-flex card-mark-flat:hidden",
);
/** A low card has its number beside its name, or whole below it: a number that is cut off is another one. */
const WORDS = classes(
  "min-w-0 flex-1 card-slim:w-full card-slim:flex-none",
  "card-low:flex card-low:max-h-6 card-low:flex-wrap card-low:justify-between card-low:gap-x-[5px] card-low:overflow-hidden",
  "card-mark:-mx-2 card-mark:block card-mark:w-[calc(100%+16px)] card-mark:overflow-visible card-mark:text-center",
);
const NAME = classes(
  "compact-card-name line-clamp-2 font-semibold text-xs/3.5 tracking-[-0.01em] wrap-normal",
  "card-narrow:text-2xs/3 card-low:max-w-full card-low:text-2xs/3",
  "card-lower-narrow:line-clamp-1 card-lowest:line-clamp-1",
  "card-mark:tracking-[-0.02em] card-mark:[text-shadow:0_0_2px_var(--surface),0_0_3px_var(--surface),0_0_4px_var(--surface)]",
);
/** A word of a name is cut where it is too long, not broken. */
const WORD = "inline-block max-w-full truncate align-bottom";
const NUMBER = classes(
  "compact-card-number truncate text-2xs/3.5",
  "card-narrow:leading-3 card-low:max-w-full card-low:leading-3 card-low-narrow:hidden",
  "card-mark-low:hidden",
);

export function CompactCard({ node, dots }: { node: string; dots: readonly Dot[] }) {
  const { catalog, store, runId } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[node]);
  const { title, number, values, isTold } = useMemo(() => {
    const { document } = store.getState();
    const kind = kindOf(catalog, data?.kind);
    const values = cardValues(catalog, document, node);
    const learns = learningText(learningValues(catalog, document, node));
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
  const words = node.split("_");
  const last = words.length - 1;
  return (
    <>
      <div
        className="compact-card absolute top-0 left-0 flex h-[calc(100%*var(--zoom,1))] w-[calc(100%*var(--zoom,1))] origin-top-left scale-(--unzoom) flex-col justify-center [container:compact-card/size]"
        title={title}
      >
        <i
          className="absolute top-[18%] left-0 h-[64%] w-[2.5px] rounded-r-[2.5px] bg-(--node-color) card-mark:hidden card-mark-flat:top-0 card-mark-flat:block card-mark-flat:h-[2.5px] card-mark-flat:w-full"
          aria-hidden="true"
        />
        <div className="relative flex min-h-0 items-center gap-1.5 pr-1.5 pl-2 card-narrow:gap-1 card-narrow:pr-[3px] card-narrow:pl-[7px] card-slim:flex-col card-slim:items-start card-slim:gap-0.5 card-mark:flex-col card-mark:items-center card-mark:gap-0.5 card-mark:px-0">
          <NodeIcon
            node={node}
            icon={kind?.icon}
            className={classes(ICON, runId && "card-narrow:[&>.lucide]:size-[11px]")}
          />
          <span className={WORDS}>
            <span className={NAME}>
              {words.map((word, place) => (
                <Fragment key={place}>
                  {place > 0 ? <wbr /> : null}
                  <span className={WORD}>{place < last ? `${word}_` : word}</span>
                </Fragment>
              ))}
            </span>
            {runId ? (
              <LiveNumber node={node} />
            ) : (
              <span
                className={classes(
                  NUMBER,
                  "block text-muted card-mark:hidden",
                  isTold && "card-roomy:hidden",
                )}
              >
                {number}
              </span>
            )}
          </span>
          {runId ? <PaceSign node={node} /> : null}
        </div>
        {runId || values.length === 0 ? null : (
          <dl className="hidden pt-1.5 pr-2 pl-2.5 text-2xs/[17px] text-muted card-roomy:block">
            {values.map(({ label, text }) => (
              <div key={label} className="flex justify-between gap-2 whitespace-nowrap">
                <dt>{label}</dt>
                <dd className="overflow-hidden text-ellipsis text-text">{text}</dd>
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

const NO_NUMBER = { title: "", value: "" };

function LiveNumber({ node }: { node: string }) {
  const { catalog } = useOpenLoop();
  const { title, value } = useLive(
    "series",
    (live) => {
      const metric = mainMetric(catalog, live, node);
      if (metric?.series.last === undefined) return NO_NUMBER;
      return { title: metric.title, value: formatBrief(metric.series.last?.value) };
    },
    NO_NUMBER,
  );
  const rate = useLive(
    "gauges",
    (live) => mainRate(stageRates(live.state.gauges, node)).replace(/ \w+\//, "/"),
    "",
  );
  return (
    // One that does not fit goes to a second line, which is not seen: cut off, it would be another number.
    <span
      className={`${NUMBER} tabular flex max-h-lh flex-wrap text-text before:h-lh before:content-['']`}
      title={title ? `${title}: ${value}` : rate}
    >
      {value || rate}
    </span>
  );
}

interface PaceSignLook {
  Icon: LucideIcon;
  label: string;
  title?: string;
  color: string;
}

const PACE_SIGNS: Record<string, PaceSignLook> = {
  bottleneck: {
    Icon: Flame,
    label: "is the bottleneck",
    title: "Most of the step's time",
    color: "text-warning-mark",
  },
  starved: { Icon: Hourglass, label: "waits for rows", color: "text-muted" },
  blocked: { Icon: Ban, label: "is blocked", color: "text-warning-mark" },
};

function PaceSign({ node }: { node: string }) {
  const state = useLive(
    "gauges",
    (live) => {
      const pace = paceOf(live, node);
      return pace.bottleneck === null ? pace.state : "bottleneck";
    },
    "none",
  );
  const sign = PACE_SIGNS[state];
  if (!sign) return null;
  const { Icon, label, title = label, color } = sign;
  return (
    <span
      className={`compact-card-pace inline-flex flex-none card-narrow:absolute card-narrow:-top-px card-narrow:right-[3px] ${color}`}
      data-state={state}
      title={title}
    >
      <Icon size={13} role="img" aria-label={`${node} ${label}`} />
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
      className="compact-dot after:pointer-events-none after:size-[calc(6px*var(--unzoom))] after:rounded-full after:bg-(--port-color) data-blocked:opacity-28 data-open:after:size-[calc(9px*var(--unzoom))]"
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
