// @vitest-environment jsdom
import { act, cleanup, fireEvent, render, renderHook, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import type { OutputPort } from "@/api/types";
import { PortFold } from "@/features/canvas/PortFold";
import { useNodePorts } from "@/features/canvas/useNodePorts";
import { PaletteItem } from "@/features/palette/Palette";
import { catalog, smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

const drawn = vi.hoisted(() => ({
  from: null as { node: string; port: string; isOutput: boolean } | null,
}));
vi.mock("@/features/canvas/handles", async (original) => ({
  ...(await original<typeof import("@/features/canvas/handles")>()),
  useDrawnFrom: () => drawn.from,
}));

afterEach(() => {
  cleanup();
  drawn.from = null;
  vi.useRealTimers();
});

it("an edge drawn from an output leaves an input of the same name folded", () => {
  const document = smallLoop();
  document.edges = [];
  drawn.from = { node: "exact", port: "scores", isOutput: true };
  const { wrapper } = insideLoop({ document });

  const { result } = renderHook(() => useNodePorts("exact"), { wrapper });

  expect(result.current.foldedInputs.map(({ name }) => name)).toContain("scores");
  expect(result.current.drawnFrom).toBe("outputs");
});

it("folded ports close when an edge was drawn from them, though nothing tells of the pointer's leaving", () => {
  vi.useFakeTimers();
  const { wrapper: Wrapper } = insideLoop();
  const ports = (catalog.kinds.reward?.outputs ?? []) as OutputPort[];
  const fold = (fitting: ReadonlySet<string> | null) => (
    <Wrapper>
      <PortFold
        node="exact"
        side="output"
        ports={ports}
        fitting={fitting}
        isDrawnFrom={fitting !== null}
        top={0}
        isReachable
      />
    </Wrapper>
  );
  const { rerender } = render(fold(null));
  const button = screen.getByRole("button", { name: /free outputs? of exact/ });
  fireEvent.pointerEnter(screen.getByRole("group", { name: "Free outputs of exact" }));
  act(() => void vi.advanceTimersByTime(200));
  expect(button.getAttribute("aria-expanded")).toBe("true");

  rerender(fold(new Set()));
  expect(button.getAttribute("aria-expanded")).toBe("true");
  rerender(fold(null));

  expect(button.getAttribute("aria-expanded")).toBe("false");
});

it("a double click in the palette adds one node", () => {
  const add = vi.fn();
  const kind = catalog.kinds.actor;
  if (!kind) throw new Error("the catalog has no actors");
  render(<PaletteItem kind={kind} isDisabled={false} onAdd={add} />);
  const button = screen.getByRole("button");
  button.focus();

  fireEvent.click(button, { detail: 1 });
  fireEvent.click(button, { detail: 2 });

  expect(add).toHaveBeenCalledTimes(1);
  expect(document.activeElement).toBe(document.body);
});
