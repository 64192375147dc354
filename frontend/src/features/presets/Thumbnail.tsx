import { type RefObject, useEffect, useMemo, useRef, useState } from "react";
import type { Catalog, Sketch } from "@/api/types";
import { IDENTITIES, nodeColors } from "@/lib/colors";
import { KindIcon } from "@/ui/KindIcon";
import { drawSketch, SKETCH_BOX, type SketchBox } from "./sketch";

interface ThumbnailProps {
  catalog: Catalog | undefined;
  sketch: Sketch;
}

/** The graph of a preset in small, in the colours that it has in the editor; drawn once it comes into sight. */
export function Thumbnail({ catalog, sketch }: ThumbnailProps) {
  const [place, isSeen] = useSeen<HTMLDivElement>();
  return (
    <div
      ref={place}
      aria-hidden="true"
      className="thumbnail flex h-[124px] items-center justify-center overflow-hidden rounded-t-3 border-line border-b px-4 py-3"
    >
      {isSeen && catalog ? <Drawing catalog={catalog} sketch={sketch} /> : null}
    </div>
  );
}

function Drawing({ catalog, sketch }: { catalog: Catalog; sketch: Sketch }) {
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
        <path key={index} d={path} className="thumbnail-lesson" stroke={colors[learner]} />
      ))}
      {boxes.map((box) => (
        <Box key={box.id} box={box} color={colors[box.id]} icon={catalog.kinds[box.kind]?.icon} />
      ))}
    </svg>
  );
}

function Box({
  box,
  color,
  icon,
}: {
  box: SketchBox;
  color: string | undefined;
  icon: string | undefined;
}) {
  return (
    <g transform={`translate(${box.x} ${box.y})`} color={color}>
      <rect width={SKETCH_BOX} height={SKETCH_BOX} rx={8} className="thumbnail-box" />
      {box.learns ? (
        <rect x={0} y={9} width={3} height={SKETCH_BOX - 18} rx={1.5} fill="currentColor" />
      ) : null}
      <g transform="translate(8 8)">
        <KindIcon name={icon} size={18} />
      </g>
    </g>
  );
}

/** Whether a place has come near the window yet; from then on it stays true. */
function useSeen<T extends Element>(): [RefObject<T | null>, boolean] {
  const place = useRef<T>(null);
  const [isSeen, setSeen] = useState(typeof IntersectionObserver === "undefined");
  useEffect(() => {
    const element = place.current;
    if (!element || isSeen) return;
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true),
      { rootMargin: "200px" },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [isSeen]);
  return [place, isSeen];
}
