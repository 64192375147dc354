// @vitest-environment jsdom
/** The list of nodes: a rail of signs that opens over the graph, and stays open where it is pinned. */
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { ReactFlowProvider } from "@xyflow/react";
import { afterEach, expect, it, vi } from "vitest";
import { PaletteRail } from "@/features/palette/PaletteRail";
import { usePalette, usePreferences } from "@/state/preferences";
import { insideLoop } from "../fixtures/open";

afterEach(() => {
  cleanup();
  vi.useRealTimers();
  usePalette.getState().close();
  usePreferences.setState({ isPalettePinned: null });
});

function show(): void {
  usePreferences.setState({ isPalettePinned: false });
  const { wrapper: Loop } = insideLoop();
  render(
    <Loop>
      <ReactFlowProvider>
        <PaletteRail />
      </ReactFlowProvider>
    </Loop>,
  );
}

const isOpen = () => screen.queryByRole("searchbox") !== null;
const actor = () => screen.getByRole("button", { name: "Actor" });

it("shows a sign of each kind, each with its name, and can be dragged from", () => {
  show();

  expect(isOpen()).toBe(false);
  expect((actor() as HTMLButtonElement).draggable).toBe(true);
});

it("opens with the focus in its search by its button, and closes with Escape", () => {
  show();
  fireEvent.click(screen.getByRole("button", { name: "Show the nodes" }));

  const search = screen.getByRole("searchbox");
  expect(document.activeElement).toBe(search);
  fireEvent.keyDown(search, { key: "Escape" });
  expect(isOpen()).toBe(false);
});

it("opens while the pointer rests in it, and a node that is dragged away closes it", () => {
  vi.useFakeTimers();
  show();
  fireEvent.pointerEnter(screen.getByRole("navigation").parentElement as HTMLElement, {
    pointerType: "mouse",
  });
  expect(isOpen()).toBe(false);
  act(() => void vi.runAllTimers());
  expect(isOpen()).toBe(true);

  fireEvent.dragStart(actor(), { dataTransfer: { setData: () => {} } });
  expect(isOpen()).toBe(false);
  fireEvent.dragEnd(actor());
});

it("stays open once it is pinned, which is remembered", () => {
  show();
  fireEvent.click(screen.getByRole("button", { name: "Show the nodes" }));
  fireEvent.click(screen.getByRole("button", { name: "Keep the list open" }));

  expect(isOpen()).toBe(true);
  expect(usePreferences.getState().isPalettePinned).toBe(true);
  fireEvent.click(screen.getByRole("button", { name: "Unpin the list" }));
  expect(isOpen()).toBe(false);
});
