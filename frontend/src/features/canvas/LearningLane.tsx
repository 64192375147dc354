import { ViewportPortal } from "@xyflow/react";
import { GraduationCap } from "lucide-react";
import type { Drawing } from "./routes";

/** Beyond what a window shows of it. */
const BEYOND = 3000;

/** The ground below all boxes on which learning runs back. */
export function LearningLane({ drawing: { laneTop, area } }: { drawing: Drawing }) {
  if (laneTop === null || area === null) return null;
  const width = area.right - area.left + 2 * BEYOND;
  return (
    <ViewportPortal>
      <div
        className="learning-lane"
        style={{
          transform: `translate(${area.left - BEYOND}px, ${laneTop}px)`,
          width,
          height: area.bottom - laneTop + BEYOND,
          paddingLeft: BEYOND + 12,
        }}
      >
        <span>
          <GraduationCap size={14} aria-hidden="true" /> Learning
        </span>
      </div>
    </ViewportPortal>
  );
}
