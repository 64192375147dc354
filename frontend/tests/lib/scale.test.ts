import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { roomy } from "@/lib/scale";

describe("the ends of a vertical axis", () => {
  it("leave a little air, and none below zero where nothing is", () => {
    expect(roomy(1, 2)).toEqual([1 - 0.06, 2 + 0.06]);
    expect(roomy(0, 1)).toEqual([0, 1.06]);
    expect(roomy(-1, 1)).toEqual([-1.12, 1.12]);
  });

  it("hold a flat line in their middle", () => {
    expect(roomy(10, 10)).toEqual([8, 12]);
    expect(roomy(0, 0)).toEqual([0, 1]);
    expect(roomy(null, null)).toEqual([0, 1]);
  });

  it("take two values that differ by rounding only for one", () => {
    const [min, max] = roomy(6.83, 6.830000000000001);

    expect(min).toBeCloseTo(5.464, 6);
    expect(max).toBeCloseTo(8.196, 6);
  });

  it("are so far apart that a thousand marks have room between them", () => {
    const value = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e300, max: 1e300 });
    fc.assert(
      fc.property(value, fc.nat(64), (from, ulps) => {
        const to = from + Math.abs(from) * Number.EPSILON * ulps;
        const [min, max] = roomy(from, to);
        const mark = (max - min) / 1000;
        expect(min + mark).toBeGreaterThan(min);
        expect(max - mark).toBeLessThan(max);
        expect(min).toBeLessThanOrEqual(from < 1e-30 && from > -1e-30 ? 0 : from);
        expect(max).toBeGreaterThanOrEqual(to);
      }),
    );
  });
});
