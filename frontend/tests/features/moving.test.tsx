// @vitest-environment jsdom
/** What is painted anew while the graph moves under a hand: nothing but where the window stands in the overview. */

import { act, cleanup, render, screen } from "@testing-library/react";
import { useStoreApi } from "@xyflow/react";
import { Profiler, useRef } from "react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { CanvasGround } from "@/features/canvas/Canvas";
import { Overview } from "@/features/canvas/CanvasTools";
import { useMoves } from "@/features/canvas/useMoves";
import { insideLoop } from "../fixtures/open";

const NODES = Array.from({ length: 100 }, (_, index) => ({
  id: `n${index}`,
  position: { x: 300 * (index % 10), y: 200 * Math.floor(index / 10) },
  width: 240,
  height: 120,
  data: {},
}));
const MOVES = 30;
const BY_HAND = new Event("pointermove");

interface Seen {
  painted: Map<string, number>;
  store?: ReturnType<typeof useStoreApi>;
  moves?: ReturnType<typeof useMoves>;
}

function Around({ seen }: { seen: Seen }) {
  const { painted } = seen;
  const note = (id: string) => painted.set(id, (painted.get(id) ?? 0) + 1);
  const frame = useRef<HTMLDivElement>(null);
  seen.store = useStoreApi();
  seen.moves = useMoves(frame);
  return (
    <div ref={frame} data-testid="frame">
      <div className="react-flow__viewport-portal" />
      <Profiler id="ground" onRender={note}>
        <CanvasGround />
      </Profiler>
      <Profiler id="overview" onRender={note}>
        <Overview />
      </Profiler>
    </div>
  );
}

function opened() {
  const seen: Seen = { painted: new Map() };
  const { wrapper } = insideLoop();
  const view = render(<Around seen={seen} />, { wrapper });
  const frame = () => screen.getByTestId("frame");
  const { store, moves, painted } = seen;
  act(() => {
    const domNode = frame() as HTMLDivElement;
    store?.setState({ domNode, nodes: NODES, width: 800, height: 600, transform: [0, 0, 1] });
  });
  const go = (x: number, zoom: number, event: Event | null = BY_HAND) =>
    act(() => {
      moves?.onMove(event, { x, y: 0, zoom });
      store?.setState({ transform: [x, 0, zoom] });
    });
  return { view, painted, go, end: () => moves?.onMoveEnd(), frame };
}

const shown = () => screen.getByRole("img").getAttribute("viewBox");
const isMoving = (frame: HTMLElement) => frame.hasAttribute("data-moving");

afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

describe("a graph that is moved by hand", () => {
  it("paints its ground not once, and of the overview only the window", () => {
    const { painted, go, frame } = opened();
    go(1, 1);
    const [before, boxes] = [shown(), screen.getByRole("img").querySelectorAll("rect").length];
    painted.clear();

    for (let step = 0; step < MOVES; step += 1) go(20 * step, 1);

    expect(boxes).toBe(NODES.length); // the control: all of it is there
    expect(frame().querySelectorAll(".canvas-ground")).toHaveLength(1);
    expect(painted.get("ground")).toBeUndefined();
    expect(painted.get("overview")).toBe(MOVES);
    expect(shown()).toBe(before);
  });

  it("is drawn anew where it rests, and where it was stretched too far", () => {
    vi.useFakeTimers();
    const { painted, go, end, frame } = opened();
    go(0, 1);
    go(0, 1.2);
    expect(isMoving(frame())).toBe(true);

    go(0, 2.5);
    expect(isMoving(frame())).toBe(false);

    go(0, 2.6);
    expect(isMoving(frame())).toBe(true);
    painted.clear();
    end();
    act(() => vi.advanceTimersByTime(1000));
    expect(isMoving(frame())).toBe(false);
    expect(painted.get("ground")).toBe(1);
  });

  it("goes on while the wheel still turns", () => {
    vi.useFakeTimers();
    const { go, end, frame } = opened();
    for (let step = 0; step < 5; step += 1) {
      go(step, 1);
      end();
      act(() => vi.advanceTimersByTime(100));
      expect(isMoving(frame())).toBe(true);
    }
  });

  it("stays sharp where the page moves it, and when it is left", () => {
    const { view, go, frame } = opened();
    go(40, 1, null);
    expect(isMoving(frame())).toBe(false);

    go(60, 1);
    const left = frame();
    expect(isMoving(left)).toBe(true);
    view.unmount();
    const again = opened();
    expect(isMoving(again.frame())).toBe(false);
  });
});
