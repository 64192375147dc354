import { defineCommand } from "../command";
import type { Fragment } from "../fragment";

/** The fragment's names are free; `placeFragment` sees to that. */
export const pasteItems = defineCommand<{ fragment: Fragment }>("Paste", (draft, { fragment }) => {
  for (const [id, node] of Object.entries(fragment.nodes)) {
    if (id in draft.nodes) continue;
    draft.nodes[id] = node;
    const point = fragment.layout[id];
    if (point) draft.layout[id] = point;
  }
  draft.edges.push(...fragment.edges);
});
