import { defineCommand } from "../command";
import { edgeKeys, portRef } from "../edges";
import { mapPhases } from "../phases";

interface RemoveItems {
  nodes: readonly string[];
  edges: readonly string[];
}

/** Nodes go with their edges, their place and what phases taught them; other mentions are left for the check to find. */
export const removeItems = defineCommand<RemoveItems>("Delete", (draft, { nodes, edges }) => {
  const gone = new Set(nodes);
  const cut = new Set(edges);
  const keys = edgeKeys(draft.edges);
  const kept = draft.edges.filter(
    (edge, index) =>
      !cut.has(keys[index] ?? "") &&
      !gone.has(portRef(edge.from).node) &&
      !gone.has(portRef(edge.to).node),
  );
  if (kept.length !== draft.edges.length) draft.edges = kept;
  for (const id of nodes) {
    delete draft.nodes[id];
    delete draft.layout[id];
  }
  if (gone.size === 0) return;
  mapPhases(draft, (phase) => {
    const { learn } = phase;
    if (!Array.isArray(learn)) return;
    const left = learn.filter((port) => typeof port !== "string" || !gone.has(portRef(port).node));
    if (left.length !== learn.length) phase.learn = left;
  });
});
