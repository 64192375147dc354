import type { ReactNode } from "react";
import { classes } from "@/ui/classes";
import { Resizer, type ResizerProps } from "@/ui/Resizer";

interface PaneProps extends ResizerProps {
  label: string;
  sizeOf: string;
  /** As large as it is drawn, where that is not what was chosen. */
  shown?: number;
  className?: string;
  children: ReactNode;
}

/** A part of the page beside or below the graph, with an edge to drag. */
export function Pane({ label, sizeOf, shown, className, children, ...resizer }: PaneProps) {
  const { grows, size } = resizer;
  const Part = grows === "left" ? "aside" : "section";
  return (
    <Part
      aria-label={label}
      className={classes(
        "relative shrink-0 border-line",
        grows === "left" ? "border-l" : "border-t",
        className,
      )}
      style={{ [grows === "left" ? "width" : "height"]: shown ?? size }}
    >
      <Resizer {...resizer} label={sizeOf} />
      {children}
    </Part>
  );
}
