import { describe, expect, it } from "vitest";
import { freeName, nameProblem } from "@/document/names";

describe("names of nodes", () => {
  it("a wish that is free is granted", () => {
    expect(freeName("probe", new Set())).toBe("probe");
  });

  it("a taken name gets the next number", () => {
    expect(freeName("probe", new Set(["probe", "probe_2"]))).toBe("probe_3");
    expect(freeName("probe_2", new Set(["probe", "probe_2"]))).toBe("probe_3");
  });

  it("says what is wrong with a name", () => {
    const taken = new Set(["actor"]);

    expect(nameProblem("", taken)).toMatch(/needs a name/);
    expect(nameProblem("9lives", taken)).toMatch(/start with a letter/);
    expect(nameProblem("actor", taken)).toMatch(/in use/);
    expect(nameProblem("actor", taken, "actor")).toBeNull();
    expect(nameProblem("critic_1", taken)).toBeNull();
  });
});
