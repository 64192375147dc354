import { defineCommand } from "../command";
import type { Point } from "../types";

export const moveNodes = defineCommand<{ positions: Record<string, Point> }>(
  "Move",
  (draft, { positions }) => {
    for (const [id, [x, y]] of Object.entries(positions)) {
      if (!(id in draft.nodes)) continue;
      const old = draft.layout[id];
      if (old && old[0] === x && old[1] === y) continue;
      draft.layout[id] = [x, y];
    }
  },
);
