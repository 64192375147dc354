import { useEffect, useRef, useState } from "react";
import type { MetricInfo } from "@/api/types";
import { formatMetric } from "@/lib/format";
import type { LiveRun } from "@/live/LiveRun";
import { useResolvedTheme } from "@/session/theme";
import { RichText } from "@/ui/RichText";
import { Tooltip } from "@/ui/Tooltip";
import { chartData } from "./chartData";
import { createPlot } from "./plot";
import { useOnScreen } from "./useOnScreen";
import type { Zoom } from "./zoom";

interface ChartPanelProps {
  live: LiveRun;
  metric: string;
  /** Nodes that report it, each with its own curve. */
  nodes: readonly string[];
  /** Nodes in the order that gives them their colours. */
  /** Of every node of the loop. */
  colors: Readonly<Record<string, string>>;
  info: MetricInfo;
  smoothing: number;
}

interface Reading {
  values: (number | null)[];
  step: number | null;
}

const HEIGHT = 168;

/** One metric: a curve for each node, values at the cursor or the latest ones. Draws only while on screen. */
export function ChartPanel({ live, metric, nodes, colors, info, smoothing }: ChartPanelProps) {
  const host = useRef<HTMLDivElement>(null);
  const zoom = useRef<Zoom | null>(null);
  const isOnScreen = useOnScreen(host);
  const theme = useResolvedTheme();
  const [cursor, setCursor] = useState<Reading | null>(null);
  const [latest, setLatest] = useState<Reading>({ values: [], step: null });
  const key = nodes.join();

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new theme or set of nodes needs a new plot
  useEffect(() => {
    const element = host.current;
    if (!element || !isOnScreen) return;
    const made = createPlot(element, {
      width: element.clientWidth,
      height: HEIGHT,
      colors: nodes.map((node) => colors[node] ?? "var(--muted)"),
      zoom: zoom.current,
      onCursor: (values, step) => setCursor(values ? { values, step } : null),
    });

    let drawn = "";
    const draw = () => {
      const byNode = live.state.series.get(metric);
      const series = nodes.flatMap((node) => byNode?.get(node) ?? []);
      // Most news is of other metrics.
      const news = `${series.map((one) => one.version).join()} ${live.state.phases.length}`;
      if (news === drawn) return;
      drawn = news;
      const phases = live.state.phases.flatMap((phase) =>
        phase.step === null ? [] : [{ step: phase.step, name: phase.name }],
      );
      made.setData(chartData(series, smoothing), phases);
      setLatest({
        values: series.map((one) => one.last?.value ?? null),
        step: Math.max(...series.map((one) => one.last?.step ?? 0)),
      });
    };
    draw();
    const unwatch = live.watch("series", draw);
    const resize = new ResizeObserver(() => made.setSize(element.clientWidth, HEIGHT));
    resize.observe(element);
    return () => {
      unwatch();
      resize.disconnect();
      zoom.current = made.zoom();
      made.destroy();
    };
  }, [live, metric, key, isOnScreen, theme, smoothing]);

  const shown = cursor ?? latest;
  const summary = nodes
    .map((node, index) => `${node} ${formatMetric(latest.values[index])}`)
    .join(", ");
  return (
    <figure
      aria-label={`${info.title}: ${summary}`}
      className="min-w-0 rounded-2 border border-line bg-surface p-2"
    >
      <figcaption className="flex min-h-5 items-baseline gap-2 px-1">
        <Tooltip
          text={
            info.help ? (
              <span>
                <RichText text={info.help} /> {info.expect ? <RichText text={info.expect} /> : null}
              </span>
            ) : null
          }
        >
          <b className="truncate text-xs" title={metric}>
            {info.title}
          </b>
        </Tooltip>
        <span className="tabular text-2xs text-faint">
          {shown.step === null ? "" : `step ${shown.step}`}
        </span>
      </figcaption>
      <ul className="flex min-h-4 flex-wrap gap-x-3 px-1">
        {nodes.map((node, index) => (
          <li key={node} className="tabular flex items-center gap-1 text-2xs">
            <span
              className="h-0.5 w-3 rounded-full"
              style={{ background: colors[node] ?? "var(--muted)" }}
            />
            <span className="max-w-24 truncate text-muted" title={node}>
              {node}
            </span>
            {formatMetric(shown.values[index])}
          </li>
        ))}
      </ul>
      <div ref={host} style={{ height: HEIGHT }} aria-hidden="true" />
    </figure>
  );
}
