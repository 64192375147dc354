import { Rows3 } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { useDocument, useNodeColors } from "@/document/context";
import { formatCount, formatRate, formatSeconds } from "@/lib/format";
import { useLiveRun, useLiveVersion } from "@/live/hooks";
import type { StageSpan } from "@/live/state";
import { useSelection } from "@/session/selection";
import { useResolvedTheme } from "@/session/theme";
import { Segmented } from "@/ui/Segmented";
import { Empty } from "@/ui/States";
import { AXIS, drawTimeline, ROW, spanAt } from "./draw";
import {
  DRIVER,
  lastSeconds,
  type Range,
  type Share,
  type StepShares,
  stepShares,
  timelineRows,
  zoomRange,
} from "./rows";

type Window = "15" | "60" | "600" | "all";

const WINDOWS: readonly { value: Window; label: string }[] = [
  { value: "15", label: "15 s" },
  { value: "60", label: "1 min" },
  { value: "600", label: "10 min" },
  { value: "all", label: "All" },
];

const SHARE_STEPS = 20;

/** When each stage ran: a row a stage, a bar a run of it. The wheel zooms, a drag moves. */
export function TimelinePanel() {
  const live = useLiveRun();
  const version = useLiveVersion("spans");
  const theme = useResolvedTheme();
  const nodes = useDocument((state) => Object.keys(state.document.nodes).join());
  const canvas = useRef<HTMLCanvasElement>(null);
  const [span, setSpan] = useState<Window>("60");
  const [manual, setManual] = useState<Range | null>(null);
  const [hovered, setHovered] = useState<StageSpan | null>(null);
  const colors = useNodeColors();
  const list = useMemo(() => nodes.split(","), [nodes]);
  const spans = live?.state.spans ?? [];
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version says that the spans changed
  const rows = useMemo(() => timelineRows(spans, list), [version, list]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: likewise
  const shares = useMemo(() => stepShares(spans, SHARE_STEPS), [version]);
  const now = lastMoment(spans, live?.connection === "live");
  const range =
    manual ?? lastSeconds(spans, span === "all" ? Number.POSITIVE_INFINITY : Number(span), now);
  const origin = spans[0]?.start ?? now;

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new theme needs new colours; the range by its ends
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const draw = () =>
      drawTimeline(element, {
        rows,
        range,
        origin,
        now,
        colorOf: (node) => colors[node] ?? "var(--muted)",
        hovered,
      });
    draw();
    const resize = new ResizeObserver(draw);
    resize.observe(element);
    return () => resize.disconnect();
  }, [rows, range.start, range.end, origin, now, list, hovered, theme, colors]);

  useWheelZoom(canvas, range, setManual);

  if (spans.length === 0) {
    return (
      <Empty icon={<Rows3 size={24} />} title="Nothing has run yet">
        Each stage appears here as soon as it starts.
      </Empty>
    );
  }

  const point = (event: React.PointerEvent<HTMLCanvasElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top, width: box.width };
  };
  const drag = (event: React.PointerEvent<HTMLCanvasElement>) => {
    const { x, y, width } = point(event);
    if (event.buttons === 1) {
      const by = (-event.movementX / width) * (range.end - range.start);
      setManual({ start: range.start + by, end: range.end + by });
    } else {
      setHovered(spanAt(rows, range, width, x, y, now));
    }
  };

  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex h-10 shrink-0 items-center gap-3 px-3 text-xs">
        <p
          className="tabular min-w-0 flex-1 truncate"
          title={shares.stages.map(shareText).join("\n")}
        >
          {hovered ? (
            <>
              <b>{hovered.stage}</b> step {hovered.step ?? "–"} ·{" "}
              {formatSeconds(((hovered.end ?? now) - hovered.start) / 1000)}
              {hovered.samples ? ` · ${formatCount(hovered.samples)} rows` : ""}
              {hovered.tokens && hovered.end
                ? ` · ${formatRate((hovered.tokens * 1000) / Math.max(1, hovered.end - hovered.start), "tok")}`
                : ""}
            </>
          ) : shares.stages.length > 0 ? (
            <StepText shares={shares} />
          ) : (
            <span className="text-muted">The first step is under way.</span>
          )}
        </p>
        <Segmented
          label="Window"
          value={manual ? ("" as Window) : span}
          options={WINDOWS}
          onChange={(value) => {
            setSpan(value);
            setManual(null);
          }}
        />
      </div>
      <div className="flex min-h-0 flex-1 overflow-y-auto border-line border-t">
        <ul className="w-44 shrink-0 border-line border-r" style={{ paddingTop: AXIS }}>
          {rows.map((row) => (
            <li
              key={row.stage}
              style={{ height: ROW }}
              className={row.opens ? "border-line border-t" : undefined}
            >
              <button
                type="button"
                className="flex h-full w-full items-center gap-2 px-3 text-left text-xs hover:bg-hover"
                onClick={() => {
                  useSelection.getState().select({ nodes: [row.node] });
                  useSelection.getState().focusField(row.node, null);
                }}
              >
                <span
                  className="size-2 shrink-0 rounded-[2px]"
                  style={{ background: colors[row.node] }}
                />
                <span className="min-w-0 flex-1 truncate" title={row.stage}>
                  {row.stage}
                </span>
                {row.opens && (
                  <span className="max-w-16 truncate text-muted" title={row.pool ?? DRIVER}>
                    {row.pool ?? DRIVER}
                  </span>
                )}
              </button>
            </li>
          ))}
        </ul>
        <canvas
          ref={canvas}
          role="img"
          aria-label={`Timeline of ${rows.length} stages`}
          className="min-w-0 flex-1 cursor-grab touch-none active:cursor-grabbing"
          style={{ height: AXIS + rows.length * ROW }}
          onPointerMove={drag}
          onPointerLeave={() => setHovered(null)}
          onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        />
      </div>
    </div>
  );
}

/** One pool: its stages add up to the step. Several: they overlap, so each says how long it worked. */
function StepText({ shares }: { shares: StepShares }) {
  if (shares.pools.length > 0 && shares.every !== null) {
    return (
      <>
        <b>a step every {formatSeconds(shares.every)}</b> · at work in it{" "}
        {shares.pools.map(shareText).join(" · ")}
      </>
    );
  }
  const total = shares.stages.reduce((sum, one) => sum + one.seconds, 0);
  return (
    <>
      <b>step {formatSeconds(total)}</b> = {shares.stages.slice(0, 5).map(shareText).join(" + ")}
    </>
  );
}

function shareText(share: Share): string {
  return `${share.name} ${formatSeconds(share.seconds)}`;
}

/** The end of the axis: the present while the run goes on, else its last moment. */
function lastMoment(spans: readonly StageSpan[], isLive: boolean): number {
  const last = spans.at(-1);
  const known = last ? Math.max(last.start, last.end ?? last.start) : Date.now();
  const isOpen = spans.slice(-20).some((span) => span.end === null);
  // The machine that trains may have another clock: never run far ahead of what it said.
  return isLive && isOpen ? Math.max(known, Math.min(Date.now(), known + 60_000)) : known;
}

/** React listens to the wheel passively, so the page would scroll. */
function useWheelZoom(
  canvas: React.RefObject<HTMLCanvasElement | null>,
  range: Range,
  setRange: (range: Range) => void,
): void {
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const zoom = (event: WheelEvent) => {
      event.preventDefault();
      const box = element.getBoundingClientRect();
      const at = range.start + ((event.clientX - box.left) / box.width) * (range.end - range.start);
      setRange(zoomRange(range, at, event.deltaY > 0 ? 1.2 : 1 / 1.2));
    };
    element.addEventListener("wheel", zoom, { passive: false });
    return () => element.removeEventListener("wheel", zoom);
  }, [canvas, range, setRange]);
}
