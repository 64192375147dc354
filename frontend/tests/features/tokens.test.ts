import { describe, expect, it } from "vitest";
import type { SampleRow, SampleTokens } from "@/api/types";
import { isOf } from "@/features/samples/GroupView";
import { childrenOf, groupsOf, rootOf, shortAnswer } from "@/features/samples/groups";
import {
  fullValue,
  groundOf,
  shadeOf,
  tokenLines,
  tokenTitle,
  viewsOf,
} from "@/features/samples/shades";

describe("tokens of a text", () => {
  it("are of that text, with the model's own marks in it or without", () => {
    expect(isOf({ pieces: ["7", "+", "8", "⟨eos⟩"] }, "7+8")).toBe(true);
    expect(isOf({ pieces: ["7", "⟨bos⟩", "+8"] }, "7+8")).toBe(true);
  });

  it("and not of a lesson that was made of it", () => {
    expect(isOf({ pieces: ["1", "+", "=yes"] }, "7+8")).toBe(false);
    expect(isOf({ pieces: ["1"] }, undefined)).toBe(false);
  });
});

const tokens = (change: Partial<SampleTokens> = {}): SampleTokens => ({
  id: "a",
  node: "actor",
  by: "actor",
  port: "rewards",
  algorithm: "grpo",
  ids: [1, 2, 3],
  pieces: ["7", "[5]", "x"],
  mask: [true, false, true],
  log_prob: [-0.5, 0, -2],
  advantage: [0.5, 0, -1],
  log_ratio: [0, 0, 0],
  kl: [0.1, 0, 0.4],
  entropy: [],
  clipped: [false, false, true],
  rewards: {},
  ...change,
});

const row = (id: string, change: Partial<SampleRow> = {}): SampleRow => ({
  seq: 1,
  id,
  step: 3,
  node: "generator",
  scores: {},
  has_tokens: false,
  ...change,
});

describe("shades of tokens", () => {
  it("are as strong as the number, green where it helps and red where it hurts", () => {
    const full = fullValue(tokens().advantage);

    expect(shadeOf(0.5, "ofAdvantage", full)).toEqual({ tone: "good", strength: 0.5 });
    expect(shadeOf(-1, "ofAdvantage", full)).toEqual({ tone: "bad", strength: 1 });
    expect(shadeOf(-1, "ofKl", full).tone).toBe("plain");
    expect(groundOf({ tone: "good", strength: 0 })).toBeUndefined();
  });

  it("say of a token what is known of it, and of a tool's that it is not trained", () => {
    expect(tokenTitle(tokens(), 1)).toBe("not trained");
    expect(tokenTitle(tokens(), 2)).toContain("clipped");
    expect(tokenTitle(tokens(), 2)).toContain("advantage");
  });

  it("only what the row has numbers for can be chosen", () => {
    expect(viewsOf(tokens())).toEqual(["ofAdvantage", "ofKl"]);
    expect(viewsOf(tokens({ rewards: { steps: [null, 1, null] } }))).toContain("ofScores");
  });

  it("tokens stand in the lines of their text, whichever break a line", () => {
    const lines = tokenLines(["a", "b\nc", "\n", "d"]);

    expect(lines.map((places) => places.map(({ text }) => text).join(""))).toEqual([
      "ab",
      "c",
      "d",
    ]);
    expect(lines[1]?.[0]?.place).toBe(1);
  });
});

describe("rows of one prompt", () => {
  const solutions = [row("s1", { group: "p1", reward: 0 }), row("s2", { group: "p1", reward: 1 })];
  const other = row("s3", { group: "p2", reward: 1 });
  const critique = row("c1", { node: "verifier", group: "s1", parents: ["s1"] });
  const answer = row("d1", { node: "generator", parents: ["c1", "s1"] });
  const rows = [...solutions, other, critique, answer];

  it("stand together, and what answers to one of them stands with none", () => {
    expect(groupsOf(rows, "given").map((group) => group.rows.map(({ id }) => id))).toEqual([
      ["s1", "s2"],
      ["s3"],
    ]);
    expect(groupsOf(rows, "best")[0]?.rows[0]?.id).toBe("s3");
  });

  it("lead to what answers to them, and back", () => {
    expect(childrenOf(solutions[0] as SampleRow, rows)).toEqual([critique]);
    expect(childrenOf(critique, rows)).toEqual([answer]);
    expect(rootOf(answer, rows).id).toBe("s1");
  });

  it("are told apart by what they answer", () => {
    expect(shortAnswer("Write 36.\nSo it is \\boxed{91}.")).toBe("91");
    expect(shortAnswer("one\ntwo")).toBe("two");
  });
});
