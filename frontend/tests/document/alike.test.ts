/** A new node has the model, the lengths and the learning rate of those around it. */
import { expect, it } from "vitest";
import { likeNeighbours } from "@/document/alike";
import { catalog, smallLoop } from "../fixtures/loops";

const BEGUN = {
  kind: "verifier",
  model: { type: "scratch", architecture: "tiny-qwen3" },
  rollout: { max_new_tokens: 16, completions_per_prompt: 1 },
};

function loop() {
  const document = smallLoop();
  Object.assign(document.nodes.actor ?? {}, {
    model: { type: "pretrained", path: "smollm2-135m" },
    rollout: { max_new_tokens: 512 },
  });
  return document;
}

it("takes what it has itself from the nearest that has it, and nothing else", () => {
  const like = likeNeighbours(catalog, loop(), BEGUN, null, "exact");

  expect(like).toEqual({
    kind: "verifier",
    model: { type: "pretrained", path: "smollm2-135m" },
    rollout: { max_new_tokens: 512, completions_per_prompt: 1 },
  });
});

it("takes no model that is another node's, though it is nearer", () => {
  const { model } = likeNeighbours(catalog, loop(), BEGUN, null, "start");

  expect(model).toEqual({ type: "pretrained", path: "smollm2-135m" });
});

it("keeps a model that is a snapshot of another node's", () => {
  const begun = { kind: "reference", model: { type: "snapshot", of: "actor" } };

  expect(likeNeighbours(catalog, loop(), begun, null, "actor")).toEqual(begun);
});

it("is as it begins in an empty loop, and beside what is a copy of it", () => {
  const document = loop();
  delete document.nodes.actor;

  expect(likeNeighbours(catalog, { ...document, nodes: {} }, BEGUN, null)).toEqual(BEGUN);
  const copy = { kind: "reward", model: { type: "copy", of: "judge" } };
  const nodes = { judge: { ...BEGUN }, rm: copy };
  expect(likeNeighbours(catalog, { ...document, nodes }, BEGUN, "judge").model).toEqual(
    BEGUN.model,
  );
});
