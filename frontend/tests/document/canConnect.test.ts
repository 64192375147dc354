import { describe, expect, it } from "vitest";
import { canConnect } from "@/document/canConnect";
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
    loop.nodes.other = { kind: "reference", model: { type: "snapshot", of: "actor" } };
    loop.edges.push({ from: "start.log_probs", to: "actor.reference" });

    expect(ask("other.log_probs", "actor.reference", loop)).toMatchObject({ ok: false });
    expect(
      ask("other.log_probs", "actor.reference", loop, "start.log_probs->actor.reference"),
    ).toEqual({ ok: true });
  });

  it("refuses ports that do not exist", () => {
    expect(ask("problems.nothing", "actor.prompts")).toMatchObject({ ok: false });
  });
});
