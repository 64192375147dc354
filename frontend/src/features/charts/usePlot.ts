import { type RefObject, useEffect, useRef } from "react";
import type { CurveName } from "@/catalog/charts";
import { type Curve, curveKey, curvesOf } from "@/live/curves";
import { useReplayStep } from "@/live/hooks";
import { type LiveRun, TICK } from "@/live/LiveRun";
import { marksNow } from "@/live/marks";
import { lowerBound, type Series } from "@/live/series";
import { useResolvedTheme } from "@/state/theme";
import { chartData } from "./chartData";
import { createPlot, type Plot, type Zoom } from "./plot";

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
  /** Curves of the run that this one was forked from. */
  parent: ReadonlyMap<string, Curve> | null;
  colors: readonly string[];
  smoothing: number;
  kept: ReadonlySet<number> | null;
  height: number;
  isOnScreen: boolean;
  zoom: Zoom | null;
  onCursor: (reading: Reading | null) => void;
  onLatest: (latest: readonly Latest[]) => void;
  onZoom: (zoom: Zoom | null) => void;
}

/** So many curves are drawn whenever there is news; with twice as many each second time, and so on. */
const CURVES_A_TICK = 12;

export function usePlot(host: RefObject<HTMLElement | null>, input: PlotInput): void {
  const { live, curves, colors, height, isOnScreen, zoom } = input;
  const theme = useResolvedTheme();
  const step = useReplayStep();
  const plot = useRef<Plot | null>(null);
  const current = useRef({ ...input, step });
  current.current = { ...input, step };
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
      zoom: current.current.zoom,
      onCursor: (values, at) => current.current.onCursor(values ? { values, step: at } : null),
      onZoom: (range) => current.current.onZoom(range),
    });
    plot.current = made;
    const resize = new ResizeObserver(() => made.setSize(element.clientWidth, height));
    resize.observe(element);
    return () => {
      resize.disconnect();
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
      const { fetched, parent, smoothing, kept, onLatest, step } = current.current;
      const found = curvesOf(live.state, curves, fetched);
      const news = `${found.map((one) => one?.line.version).join()} ${live.state.marks.length}`;
      if (news === drawn) return;
      drawn = news;
      const before = curves.map((name) => parent?.get(curveKey(name)) ?? null);
      plot.current?.setData(chartData(found, smoothing, before), marksNow(live.state.marks, kept));
      onLatest(latestOf(found, step));
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
  }, [
    live,
    key,
    palette,
    isOnScreen,
    theme,
    height,
    input.smoothing,
    input.fetched,
    input.parent,
    input.kept,
  ]);

  useEffect(() => plot.current?.setZoom(zoom), [zoom]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: likewise
  useEffect(() => {
    plot.current?.setNow(step);
    if (!isOnScreen) return;
    const { fetched, onLatest } = current.current;
    onLatest(latestOf(curvesOf(live.state, curves, fetched), step));
  }, [step, key, palette, isOnScreen, theme, height]);
}

/** The last point of each curve, or the last one that a replay has reached. */
export function latestOf(curves: readonly (Curve | null)[], until: number | null): Latest[] {
  return curves.map((curve) => {
    const { steps, values, last } = curve?.line ?? NO_LINE;
    if (until === null || (last && last.step <= until)) return last ?? NO_POINT;
    const at = lowerBound(steps, until + 1) - 1;
    return { step: steps[at] ?? null, value: values[at] ?? null };
  });
}

const NO_POINT: Latest = { value: null, step: null };
const NO_LINE: Pick<Series, "steps" | "values" | "last"> = { steps: [], values: [], last: null };
