/** A learner keeps its colour from its creation until it is deleted. */
import { describe, expect, it } from "vitest";
import { fromSpec, toSpec } from "@/document/convert";
import { keepIdentities, withIdentities } from "@/document/identities";
import { addNode, removeItems, renameNode } from "@/state/commands/nodes";
import { replaceDocument } from "@/state/commands/replaceDocument";
import { createDocumentStore } from "@/state/document/store";
import { catalog, smallLoop } from "../fixtures/loops";

const judge = (id: string) => ({
  id,
  data: { kind: "verifier", method: "generative", algorithm: { rewards: { name: "grpo" } } },
  position: [0, 0] as [number, number],
});

function opened() {
  const document = withIdentities(catalog, smallLoop());
  return createDocumentStore({ document, text: "", settle: keepIdentities(catalog) });
}

describe("identities", () => {
  it("are given to learners only", () => {
    expect(opened().getState().document.identities).toEqual({ actor: 1 });
  });

  it("are given with the command that makes a learner, and not dealt anew when another goes", () => {
    const store = opened();
    const { dispatch } = store;
    dispatch(addNode, judge("first"));
    dispatch(addNode, judge("second"));
    expect(store.getState().document.identities).toEqual({ actor: 1, first: 2, second: 3 });

    dispatch(removeItems, { nodes: ["first"], edges: [] });
    expect(store.getState().document.identities).toEqual({ actor: 1, second: 3 });
    dispatch(addNode, judge("third"));
    expect(store.getState().document.identities).toMatchObject({ second: 3, third: 2 });

    store.undo();
    store.undo();
    expect(store.getState().document.identities).toEqual({ actor: 1, first: 2, second: 3 });
    expect(store.getState().history.past).toHaveLength(2);
  });

  it("go with the name, and through the file", () => {
    const store = opened();
    const { dispatch } = store;
    dispatch(addNode, judge("first"));
    dispatch(removeItems, { nodes: ["actor"], edges: [] });
    dispatch(renameNode, { catalog, from: "first", to: "judge" });
    expect(store.getState().document.identities).toEqual({ judge: 2 });

    const spec = toSpec(store.getState().document);
    expect(spec.layout).toMatchObject({ $colors: { judge: 2 } });
    expect(fromSpec(spec).identities).toEqual({ judge: 2 });
  });

  it("stay when typed text does not tell of them", () => {
    const store = opened();
    store.dispatch(addNode, judge("first"));
    store.dispatch(removeItems, { nodes: ["actor"], edges: [] });
    const before = store.getState().document;
    const { identities: _, ...typed } = before;

    const document = withIdentities(catalog, typed, before.identities);
    store.dispatch(replaceDocument, { document });

    expect(store.getState().document.identities).toEqual({ first: 2 });
  });
});
