import { type RefObject, useEffect, useRef } from "react";
import type { CurveName } from "@/catalog/charts";
import { type Curve, curvesOf } from "@/live/curves";
import { type LiveRun, TICK } from "@/live/LiveRun";
import { useReplayStep } from "@/live/recordContext";
import { useResolvedTheme } from "@/session/theme";
import { chartData } from "./chartData";
import { createPlot, type Plot } from "./plot";
import type { Zoom } from "./zoom";

export interface Reading {
  values: (number | null)[];
  step: number | null;
}

export interface Latest {
  value: number | null;
  step: number | null;
}

interface PlotInput {
  live: LiveRun;
  curves: readonly CurveName[];
  fetched: ReadonlyMap<string, Curve> | null;
  colors: readonly string[];
  smoothing: number;
  height: number;
  isOnScreen: boolean;
  onCursor: (reading: Reading | null) => void;
  onLatest: (latest: readonly Latest[]) => void;
  onZoom: (zoom: Zoom | null) => void;
}

/** So many curves are drawn whenever there is news; with twice as many each second time, and so on. */
const CURVES_A_TICK = 12;

/** A plot in an element for as long as it is on screen; drawn again when its own curves have news. */
export function usePlot(host: RefObject<HTMLElement | null>, input: PlotInput): void {
  const { live, curves, colors, height, isOnScreen } = input;
  const theme = useResolvedTheme();
  const step = useReplayStep();
  const plot = useRef<Plot | null>(null);
  const zoom = useRef<Zoom | null>(null);
  const current = useRef(input);
  current.current = input;
  const key = curves.map(({ node, metric }) => `${node} ${metric}`).join();
  const palette = colors.join();

  // biome-ignore lint/correctness/useExhaustiveDependencies: other curves, colours or a theme need a new plot
  useEffect(() => {
    const element = host.current;
    if (!element || !isOnScreen) return;
    const made = createPlot(element, {
      width: element.clientWidth,
      height,
      colors,
      dashed: curves.map((one, place) => curves.findIndex(({ node }) => node === one.node) < place),
      zoom: zoom.current,
      onCursor: (values, at) => current.current.onCursor(values ? { values, step: at } : null),
      onZoom: (range) => current.current.onZoom(range),
    });
    plot.current = made;
    const resize = new ResizeObserver(() => made.setSize(element.clientWidth, height));
    resize.observe(element);
    return () => {
      resize.disconnect();
      zoom.current = made.zoom();
      plot.current = null;
      made.destroy();
    };
  }, [live, key, palette, isOnScreen, theme, height]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new plot has nothing yet
  useEffect(() => {
    if (!isOnScreen) return;
    let drawn = "";
    let drawnAt = 0;
    let last: ReturnType<typeof setTimeout> | undefined;
    const draw = () => {
      drawnAt = Date.now();
      const { fetched, smoothing, onLatest } = current.current;
      const found = curvesOf(live.state, curves, fetched);
      // Most news is of other metrics.
      const news = `${found.map((one) => one?.line.version).join()} ${live.state.marks.length}`;
      if (news === drawn) return;
      drawn = news;
      plot.current?.setData(chartData(found, smoothing), live.state.marks);
      onLatest(
        found.map((one) => ({
          value: one?.line.last?.value ?? null,
          step: one?.line.last?.step ?? null,
        })),
      );
    };
    draw();
    const pause = TICK * (Math.ceil(curves.length / CURVES_A_TICK) - 0.5);
    const leave = live.watch("series", () => {
      clearTimeout(last);
      const wait = drawnAt + pause - Date.now();
      if (wait <= 0) draw();
      else last = setTimeout(draw, wait + TICK); // where no more news comes
    });
    return () => {
      clearTimeout(last);
      leave();
    };
  }, [live, key, palette, isOnScreen, theme, height, input.smoothing, input.fetched]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: likewise
  useEffect(() => {
    plot.current?.setNow(step);
  }, [step, key, palette, isOnScreen, theme, height]);
}
