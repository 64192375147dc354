// @vitest-environment jsdom
import { act, renderHook } from "@testing-library/react";
import { expect, it, vi } from "vitest";

it("a canvas is told of another theme when the page has it, not before", async () => {
  const system = { matches: false, tell: () => {} };
  vi.stubGlobal("matchMedia", () => ({
    get matches() {
      return system.matches;
    },
    addEventListener: (_: string, tell: () => void) => {
      system.tell = tell;
    },
  }));
  vi.resetModules();
  const { startTheme, useResolvedTheme } = await import("@/state/theme");
  startTheme();
  const drawn = new Set<string>();
  const { result, rerender } = renderHook(() => {
    const theme = useResolvedTheme();
    drawn.add(`${theme} on ${document.documentElement.dataset.theme}`);
    return theme;
  });

  system.matches = true;
  rerender();
  act(() => system.tell());

  expect(result.current).toBe("dark");
  expect(drawn).toEqual(new Set(["light on light", "dark on dark"]));
});
