import { useMemo } from "react";
import type { PayingEdge } from "@/document/rewards";
import { chartColors } from "@/lib/colors";
import { useNodeColors } from "@/state/document/context";

export type SourceColors = Readonly<Record<string, string>>;

/** What pays one learner stands side by side everywhere here: each source in a colour of its own. */
export function useSourceColors(edges: readonly PayingEdge[]): SourceColors {
  const colors = useNodeColors();
  return useMemo(
    () =>
      chartColors(
        colors,
        edges.map(({ node }) => node),
      ),
    [colors, edges],
  );
}
