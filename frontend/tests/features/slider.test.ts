import { expect, it } from "vitest";
import { sliderEnd } from "@/features/inspector/form/NumberWidget";

it("a slider ends where values are usual, and further only where one is beyond", () => {
  expect(sliderEnd({ max: 10, fallback: 1 }, 0.7)).toBe(2);
  expect(sliderEnd({ max: 10, fallback: 1 }, 3)).toBe(10);
  expect(sliderEnd({ max: 1, fallback: 0.9 }, 0.5)).toBe(1);
  expect(sliderEnd({ max: 1, fallback: null }, 0.5)).toBe(1);
});
