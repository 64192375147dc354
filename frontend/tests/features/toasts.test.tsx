// @vitest-environment jsdom
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Toasts } from "@/app/Toasts";
import { toast, useToasts } from "@/session/toast";

const shown = () => screen.queryAllByRole("listitem").map((one) => one.textContent);
const wait = (milliseconds: number) => act(() => vi.advanceTimersByTime(milliseconds));
const say = (tell: () => void) => act(tell);

beforeEach(() => {
  vi.useFakeTimers();
  useToasts.setState([], true);
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

it("what was said before there was somebody to show it is shown, and goes after its time", () => {
  toast("Copied 1 node as YAML");
  toast.error("The run did not start.", { description: "No GPU.", duration: 5000 });
  render(<Toasts />);
  expect(shown()).toEqual(["Copied 1 node as YAML", "The run did not start.No GPU."]);

  wait(2500);
  expect(shown()).toEqual(["The run did not start.No GPU."]);
  wait(2500);
  expect(shown()).toEqual([]);
});

it("one of the same name takes the place of the one before, for its whole time", () => {
  render(<Toasts />);
  say(() => toast("Undid: Add a", { id: "history" }));
  wait(2000);
  say(() => toast("Undid: Add b", { id: "history" }));

  wait(2000);
  expect(shown()).toEqual(["Undid: Add b"]);
  wait(500);
  expect(shown()).toEqual([]);
});

it("none goes while one is pointed at", () => {
  render(<Toasts />);
  say(() => toast("Copied the sample"));
  const list = screen.getByRole("list");

  fireEvent.pointerEnter(list);
  wait(10_000);
  expect(shown()).toEqual(["Copied the sample"]);
  fireEvent.pointerLeave(list);
  wait(2500);

  expect(shown()).toEqual([]);
});

it("its button does what it says and ends it", () => {
  const onClick = vi.fn();
  render(<Toasts />);
  say(() => toast.error("No name.", { action: { label: "Call it loop", onClick } }));

  fireEvent.click(screen.getByText("Call it loop"));

  expect(onClick).toHaveBeenCalledOnce();
  expect(shown()).toEqual([]);
});

it("three are shown at a time", () => {
  render(<Toasts />);
  say(() => {
    for (const text of ["a", "b", "c", "d"]) toast(text);
  });

  expect(shown()).toEqual(["b", "c", "d"]);
});
