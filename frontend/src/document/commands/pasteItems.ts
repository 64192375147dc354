import { defineCommand } from "../command";
import type { Fragment } from "../fragment";
import type { Point } from "../types";

interface PasteItems {
  fragment: Fragment;
  /** Where nodes without a place of their own are drawn; now these become their places. */
  shown?: Record<string, Point>;
}

/** The fragment's names are free; `placeFragment` sees to that. */
export const pasteItems = defineCommand<PasteItems>("Paste", (draft, { fragment, shown }) => {
  draft.layout = { ...shown, ...draft.layout };
  for (const [id, node] of Object.entries(fragment.nodes)) {
    if (id in draft.nodes) continue;
    draft.nodes[id] = node;
    const point = fragment.layout[id];
    if (point) draft.layout[id] = point;
  }
  draft.edges.push(...fragment.edges);
});
