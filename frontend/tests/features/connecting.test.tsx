// @vitest-environment jsdom
import { act, cleanup, render, renderHook, screen } from "@testing-library/react";
import { type ConnectionLineComponentProps, Position } from "@xyflow/react";
import { afterEach, describe, expect, it } from "vitest";
import type { KindInfo } from "@/api/types";
import { ConnectionLine } from "@/features/canvas/ConnectionLine";
import { useMovingEdge } from "@/features/canvas/handles";
import { useConnect } from "@/features/canvas/useConnect";
import { useAddNode } from "@/state/useAddNode";
import { catalog, smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

const KEY = "start.log_probs->actor.reference";

function withReference() {
  const document = smallLoop();
  document.edges.push({ from: "start.log_probs", to: "actor.reference" });
  return insideLoop({ document });
}

function drawn(): ConnectionLineComponentProps {
  const handle = (nodeId: string, id: string, type: "source" | "target") => ({
    nodeId,
    id,
    type,
    position: Position.Left,
    x: 0,
    y: 0,
    width: 1,
    height: 1,
  });
  return {
    fromX: 0,
    fromY: 0,
    toX: 100,
    toY: 0,
    fromHandle: handle("actor", "reference", "target"),
    toHandle: handle("start", "log_probs", "source"),
  } as ConnectionLineComponentProps;
}

afterEach(() => {
  cleanup();
  useMovingEdge.setState({ key: null });
});

describe("what is said while an edge is drawn", () => {
  function showLine() {
    const { wrapper: Wrapper } = withReference();
    render(
      <Wrapper>
        <svg role="img" aria-label="line">
          <ConnectionLine {...drawn()} />
        </svg>
      </Wrapper>,
    );
  }

  it("a new edge to a port that has its one is refused", () => {
    showLine();

    expect(screen.getByText("These two are already connected.")).toBeTruthy();
  });

  it("the end of that edge may go back to its port", () => {
    useMovingEdge.setState({ key: KEY });

    showLine();

    expect(screen.queryByText(/already connected|takes one/)).toBeNull();
  });
});

describe("the edge whose end is moved", () => {
  it("is known from the press to the release", () => {
    const { wrapper } = withReference();
    const { result } = renderHook(() => useConnect(), { wrapper });
    const edge = { id: KEY, source: "start", target: "actor" };
    document.elementFromPoint = () => null;

    act(() => result.current.onReconnectStart(null, edge));
    expect(useMovingEdge.getState().key).toBe(KEY);

    act(() => result.current.onReconnectEnd(new MouseEvent("mouseup"), edge));
    expect(useMovingEdge.getState().key).toBeNull();
  });
});

describe("a node added from a port", () => {
  const kind = catalog.kinds.reference as KindInfo;
  const from = { node: "actor", port: "reference", isOutput: false };

  it("gets an edge where the port takes one", async () => {
    const { wrapper, store } = insideLoop();
    const { result } = renderHook(() => useAddNode(), { wrapper });

    await act(async () => void (await result.current({ kind, at: { x: 0, y: 0 }, from })));

    expect(store.getState().document.edges.at(-1)?.to).toBe("actor.reference");
  });

  it("gets none where the port is full", async () => {
    const critic = catalog.kinds.critic as KindInfo;
    const values = { node: "actor", port: "values", isOutput: false };
    const { wrapper, store } = insideLoop();
    const { result } = renderHook(() => useAddNode(), { wrapper });
    await act(
      async () => void (await result.current({ kind: critic, at: { x: 0, y: 0 }, from: values })),
    );
    const before = store.getState().document.edges;

    await act(
      async () => void (await result.current({ kind: critic, at: { x: 0, y: 0 }, from: values })),
    );

    expect(before.at(-1)?.to).toBe("actor.values");
    expect(store.getState().document.edges).toEqual(before);
  });
});
