/** How the graph is fitted into the window: room below is for edges that run under the boxes. */
import type { FitViewOptions } from "@xyflow/react";

export const FIT: FitViewOptions = {
  padding: { x: "5%", top: "24px", bottom: "56px" },
  maxZoom: 1,
};

export const FIT_SOFTLY: FitViewOptions = { ...FIT, duration: 200 };
