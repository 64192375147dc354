// @vitest-environment jsdom
import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { AppSkeleton } from "@/app/AppSkeleton";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  history.replaceState(null, "", "/");
});

it.each([
  ["/loops/one", /nodes and presets/],
  ["/runs/one", /Loading/],
])("says after a second what %s waits for", (path, words) => {
  history.replaceState(null, "", path);
  render(<AppSkeleton />);

  expect(screen.getByRole("status").textContent).toBe("");
  act(() => vi.advanceTimersByTime(1000));
  expect(screen.getByRole("status").textContent).toMatch(words);
});
