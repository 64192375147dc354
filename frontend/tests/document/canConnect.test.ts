import { describe, expect, it } from "vitest";
import type { Json } from "@/api/types";
import { canConnect, teachingPorts } from "@/document/canConnect";
import { catalog, smallLoop } from "../fixtures/loops";

const ends = (from: string, to: string) => {
  const [node = "", port = ""] = from.split(".");
  const [toNode = "", toPort = ""] = to.split(".");
  return [
    { node, port },
    { node: toNode, port: toPort },
  ] as const;
};

const ask = (from: string, to: string, loop = smallLoop(), ignored: string | null = null) =>
  canConnect(catalog, loop, ...ends(from, to), ignored);

describe("canConnect", () => {
  it("joins equal types", () => {
    expect(ask("start.log_probs", "actor.reference")).toEqual({ ok: true });
  });

  it("takes rollouts where rows are asked", () => {
    expect(ask("actor.rollouts", "actor.demonstrations")).toEqual({ ok: true });
  });

  it("refuses rows where rollouts are asked, and says so", () => {
    expect(ask("problems.rows", "exact.rollouts")).toEqual({
      ok: false,
      reason: "rollouts takes Rollouts, rows gives Rows.",
    });
  });

  it("refuses the same edge twice", () => {
    expect(ask("problems.rows", "actor.prompts")).toMatchObject({ ok: false });
  });

  it("refuses more edges than a port takes, except the one that is moved", () => {
    const loop = smallLoop();
    loop.nodes.other = { kind: "dataset" };
    loop.edges.push({ from: "problems.rows", to: "start.prompts" });

    expect(ask("other.rows", "start.prompts", loop)).toMatchObject({ ok: false });
    expect(ask("other.rows", "start.prompts", loop, "problems.rows->start.prompts")).toEqual({
      ok: true,
    });
  });

  it("refuses ports that do not exist", () => {
    expect(ask("problems.nothing", "actor.prompts")).toMatchObject({ ok: false });
  });
});

describe("teachingPorts", () => {
  const names = (algorithm: Json) => {
    const loop = smallLoop();
    loop.nodes.actor = { ...loop.nodes.actor, kind: "actor", algorithm };
    loop.edges.push({ from: "start.log_probs", to: "actor.reference" });
    return teachingPorts(catalog, loop).map((port) => port.name);
  };

  it("has a reference only where the algorithm learns from it", () => {
    expect(names({ name: "opd" })).toContain("actor.reference");
    expect(names({ reference: { name: "opd" } })).toContain("actor.reference");
    expect(names({ name: "grpo" })).not.toContain("actor.reference");
    expect(names({ rewards: { name: "grpo" } })).not.toContain("actor.reference");
  });
});
