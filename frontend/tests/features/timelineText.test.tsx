// @vitest-environment jsdom
import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { TimelineText } from "@/features/timeline/TimelinePanel";

afterEach(cleanup);

it("no step is said to be under way before one is", () => {
  const nothing = { pools: [], stages: [], every: null, seconds: 0 } as never;
  const text = (isUnderWay: boolean) =>
    render(<TimelineText hovered={null} shares={nothing} now={0} isUnderWay={isUnderWay} />)
      .container.textContent;

  expect(text(false)).toBe("");
  expect(text(true)).toBe("The first step is in progress.");
});
