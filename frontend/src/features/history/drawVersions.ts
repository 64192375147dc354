/** Where nodes and edges of two versions stand when one lies over the other. Pure. */
import { edgeKeys, portRef } from "@/document/edges";
import type { Edge, LoopDocument, Point } from "@/document/types";
import { deepEqual } from "@/lib/paths";

export type Standing = "same" | "added" | "removed" | "changed";

export interface DrawnNode {
  id: string;
  kind: string;
  at: Point;
  standing: Standing;
}

interface DrawnEdge {
  key: string;
  path: string;
  standing: Standing;
}

interface Drawing {
  left: number;
  top: number;
  width: number;
  height: number;
  nodes: DrawnNode[];
  edges: DrawnEdge[];
}

export const WIDTH = 168;
export const HEIGHT = 48;

/** Both documents have a place for each of their nodes. */
export function drawVersions(before: LoopDocument, after: LoopDocument): Drawing {
  const ids = [...new Set([...Object.keys(before.nodes), ...Object.keys(after.nodes)])];
  const nodes = ids.map((id): DrawnNode => {
    const [old, now] = [before.nodes[id], after.nodes[id]];
    const at = after.layout[id] ?? before.layout[id] ?? [0, 0];
    return { id, kind: (now ?? old)?.kind ?? "", at, standing: standingOf(old, now) };
  });
  const places = new Map(nodes.map(({ id, at }) => [id, at]));
  const [old, now] = [edgesOf(before), edgesOf(after)];
  const edges = [...new Set([...old.keys(), ...now.keys()])].flatMap((key): DrawnEdge[] => {
    const edge = now.get(key) ?? old.get(key);
    const from = edge && places.get(portRef(edge.from).node);
    const to = edge && places.get(portRef(edge.to).node);
    if (!from || !to) return [];
    return [{ key, path: curve(from, to), standing: standingOf(old.get(key), now.get(key)) }];
  });
  const xs = nodes.map(({ at }) => at[0]);
  const ys = nodes.map(({ at }) => at[1]);
  const [left, top] = [Math.min(0, ...xs), Math.min(0, ...ys)];
  return {
    left,
    top,
    width: Math.max(0, ...xs) + WIDTH - left,
    height: Math.max(0, ...ys) + HEIGHT - top,
    nodes,
    // What is different lies over what is not.
    edges: edges.toSorted((a, b) => Number(b.standing === "same") - Number(a.standing === "same")),
  };
}

function edgesOf({ edges }: LoopDocument): Map<string, Edge> {
  const keys = edgeKeys(edges);
  return new Map(edges.map((edge, at) => [keys[at] ?? "", edge]));
}

function standingOf(before: unknown, after: unknown): Standing {
  if (before === undefined) return "added";
  if (after === undefined) return "removed";
  return deepEqual(before, after) ? "same" : "changed";
}

function curve(from: Point, to: Point): string {
  const [x, y] = [from[0] + WIDTH, from[1] + HEIGHT / 2];
  const [endX, endY] = [to[0], to[1] + HEIGHT / 2];
  const bend = endX < x ? 80 : Math.max(40, (endX - x) / 2);
  return `M${x} ${y}C${x + bend} ${y} ${endX - bend} ${endY} ${endX} ${endY}`;
}
