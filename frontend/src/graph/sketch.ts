/**
 * A thumbnail of a graph: ranks from left to right as the canvas has them, lessons in a lane below. Pure.
 * Lines that only teach pull no box around, as on the canvas.
 */
import { layout as dagreLayout, graphlib } from "@dagrejs/dagre";
import type { Sketch } from "@/api/types";
import { reachable } from "@/lib/reachable";

const BOX = 34;
const GAPS = { nodesep: 14, ranksep: 34 } as const;
const LANE = 12;

export interface SketchBox {
  id: string;
  kind: string;
  learns: boolean;
  x: number;
  y: number;
}

export const SKETCH_BOX = BOX;

export function drawSketch(sketch: Sketch) {
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: "LR", ...GAPS, ranker: "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id } of sketch.nodes) graph.setNode(id, { width: BOX, height: BOX });
  for (const { source, target } of forward(sketch)) graph.setEdge(source, target);
  dagreLayout(graph);
  const boxes = sketch.nodes.map((node): SketchBox => {
    const { x, y } = graph.node(node.id);
    return { ...node, x: (x ?? 0) - BOX / 2, y: (y ?? 0) - BOX / 2 };
  });
  const at = new Map(boxes.map((box) => [box.id, box]));
  const bottom = Math.max(...boxes.map(({ y }) => y)) + BOX;
  const lines: string[] = [];
  let lanes = 0;
  const lessons: { learner: string; path: string }[] = [];
  for (const { source, target, teaches } of sketch.edges) {
    const [from, to] = [at.get(source), at.get(target)];
    if (!from || !to || from === to) continue;
    if (to.x > from.x) {
      lines.push(curve(from, to));
      continue;
    }
    const path = lane(from, to, bottom + LANE * (lanes % 3));
    lanes += 1;
    if (teaches) lessons.push({ learner: target, path });
    else lines.push(path);
  }
  return {
    width: Math.max(...boxes.map(({ x }) => x)) + BOX,
    height: bottom + (lanes > 0 ? LANE * Math.min(lanes, 3) + 4 : 0),
    boxes,
    lines,
    lessons,
  };
}

/** Edges without those that close a circle: lessons that lead back to where the data came from. */
function forward({ edges }: Sketch): Sketch["edges"] {
  const making = edges.filter((edge) => !edge.teaches);
  const links = making.map(({ source, target }) => [source, target] as const);
  return edges.filter((edge) => !edge.teaches || !reachable(links, edge.target).has(edge.source));
}

function curve(from: SketchBox, to: SketchBox): string {
  const [x1, y1] = [from.x + BOX, from.y + BOX / 2];
  const [x2, y2] = [to.x, to.y + BOX / 2];
  const bend = Math.max(12, Math.abs(x2 - x1) / 2);
  return `M${x1},${y1}C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
}

/** Down, along below all boxes, and up again. */
function lane(from: SketchBox, to: SketchBox, y: number): string {
  const [x1, x2] = [from.x + BOX / 2, to.x + BOX / 2];
  return `M${x1},${from.y + BOX}V${y + 6}H${x2}V${to.y + BOX}`;
}
