import { expect, it } from "vitest";
import { addNode } from "@/state/commands/nodes";
import { createDocumentStore } from "@/state/document/store";
import { dropMissing, select, useSelection } from "@/state/selection";
import { smallLoop } from "../fixtures/loops";

it("what undo takes away is no longer selected, and what stays is", () => {
  const store = createDocumentStore({ document: smallLoop(), text: "" });
  const letGo = () => dropMissing(store.getState().document);
  const [edge] = store.getState().document.edges;
  const key = `${edge?.from}->${edge?.to}`;
  store.dispatch(addNode, { id: "second", data: { kind: "actor" }, position: [0, 0] });
  select({ nodes: ["second", "actor"], edges: [key, "gone->too"] });

  store.undo();
  letGo();

  const { nodes, edges } = useSelection.getState();
  expect({ nodes, edges }).toEqual({ nodes: ["actor"], edges: [key] });

  select({ entry: { list: "triggers", index: 0 } });
  letGo();
  expect(useSelection.getState().entry).toEqual({ list: "triggers", index: 0 });
});
