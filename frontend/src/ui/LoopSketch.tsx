import { useMemo } from "react";
import type { Catalog, Sketch } from "@/api/types";
import { drawSketch, SKETCH_BOX } from "@/graph/sketch";
import { IDENTITIES, nodeColors } from "@/lib/colors";
import { KindIcon } from "./KindIcon";

/** The graph of a loop in small, in the colours that it has in the editor. */
export function LoopSketch({ catalog, sketch }: { catalog: Catalog; sketch: Sketch }) {
  const drawing = useMemo(() => drawSketch(sketch), [sketch]);
  const colors = useMemo(() => {
    const nodes = Object.fromEntries(sketch.nodes.map(({ id, kind }) => [id, { kind }]));
    const learners = new Set(drawing.lessons.map(({ learner }) => learner));
    const ids = sketch.nodes.map(({ id }) => id).filter((id) => learners.has(id));
    const numbers = ids.map((id, place) => [id, (place % IDENTITIES) + 1]);
    return nodeColors(catalog, nodes, Object.fromEntries(numbers));
  }, [catalog, sketch, drawing]);
  const { width, height, boxes, lines, lessons } = drawing;
  return (
    <svg
      aria-hidden="true"
      viewBox={`-3 -3 ${width + 6} ${height + 8}`}
      style={{ maxWidth: width * 1.1 }}
      className="h-full w-full"
    >
      {lines.map((path, index) => (
        <path
          key={index}
          d={path}
          className="fill-none stroke-line-strong stroke-[1.5] opacity-60"
        />
      ))}
      {lessons.map(({ learner, path }, index) => (
        <path
          key={index}
          d={path}
          className="fill-none stroke-2"
          stroke={colors[learner]}
          strokeDasharray="1.5 3.5"
          strokeLinecap="round"
        />
      ))}
      {boxes.map(({ id, kind, x, y, learns }) => (
        <g key={id} transform={`translate(${x} ${y})`} color={colors[id]}>
          <rect
            width={SKETCH_BOX}
            height={SKETCH_BOX}
            rx={8}
            className="fill-surface stroke-current"
            strokeOpacity={0.45}
          />
          {learns ? (
            <rect x={0} y={9} width={3} height={SKETCH_BOX - 18} rx={1.5} fill="currentColor" />
          ) : null}
          <g transform="translate(8 8)">
            <KindIcon name={catalog.kinds[kind]?.icon} size={18} />
          </g>
        </g>
      ))}
    </svg>
  );
}
