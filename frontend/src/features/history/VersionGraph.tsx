import { useMemo } from "react";
import { edgeKeys, portRef } from "@/document/edges";
import type { Edge, LoopDocument, Point } from "@/document/types";
import { withPlaces } from "@/graph/layout";
import { deepEqual } from "@/lib/paths";
import { useCatalog } from "@/state/document/context";

const LOOK: Record<Standing, { mark: string; said: string; ink: string; ground: string }> = {
  same: { mark: "", said: "", ink: "var(--line-strong)", ground: "var(--surface)" },
  added: { mark: "+", said: "added", ink: "var(--success)", ground: "var(--success-soft)" },
  removed: { mark: "−", said: "removed", ink: "var(--error)", ground: "var(--error-soft)" },
  changed: { mark: "~", said: "changed", ink: "var(--warning)", ground: "var(--warning-soft)" },
};
const EDGE = 88;

export function VersionGraph({ before, after }: { before: LoopDocument; after: LoopDocument }) {
  const catalog = useCatalog();
  const drawn = useMemo(() => {
    const placed = withPlaces(catalog, after, before.layout);
    return drawVersions(withPlaces(catalog, before, placed.layout), placed);
  }, [catalog, before, after]);
  const { left, top, width, height } = drawn;
  return (
    <div className="h-full overflow-auto bg-canvas p-2">
      <svg
        role="img"
        aria-label={describe(drawn.nodes)}
        width={width + 2 * EDGE}
        height={height + 2 * EDGE}
        viewBox={`${left - EDGE} ${top - EDGE} ${width + 2 * EDGE} ${height + 2 * EDGE}`}
      >
        {drawn.edges.map((edge) => (
          <path
            key={edge.key}
            d={edge.path}
            fill="none"
            stroke={LOOK[edge.standing].ink}
            strokeWidth={edge.standing === "same" ? 1.25 : 2.5}
            strokeDasharray={edge.standing === "removed" ? "5 4" : undefined}
          />
        ))}
        {drawn.nodes.map((node) => (
          <Node key={node.id} node={node} kind={catalog.kinds[node.kind]?.title ?? node.kind} />
        ))}
      </svg>
    </div>
  );
}

function Node({ node, kind }: { node: DrawnNode; kind: string }) {
  const { mark, ink, ground } = LOOK[node.standing];
  return (
    <g transform={`translate(${node.at[0]} ${node.at[1]})`}>
      <rect
        width={WIDTH}
        height={HEIGHT}
        rx={8}
        fill={ground}
        stroke={ink}
        strokeWidth={node.standing === "same" ? 1 : 2}
        strokeDasharray={node.standing === "removed" ? "5 4" : undefined}
      />
      <text x={12} y={21} fontSize={13} fontWeight={600} fill="var(--text)">
        {short(node.id)}
      </text>
      <text x={12} y={38} fontSize={12} fill="var(--muted)">
        {short(kind)}
      </text>
      {mark ? <circle cx={WIDTH} cy={0} r={10} fill={ink} /> : null}
      <text
        x={WIDTH}
        y={5}
        fontSize={15}
        fontWeight={700}
        textAnchor="middle"
        fill="var(--surface)"
      >
        {mark}
      </text>
    </g>
  );
}

const LONGEST = 20;

function short(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}

function describe(nodes: readonly DrawnNode[]): string {
  const told = nodes
    .filter(({ standing }) => standing !== "same")
    .map(({ id, standing }) => `${id} ${LOOK[standing].said}`);
  return told.length > 0 ? told.join(", ") : "No node is different";
}

type Standing = "same" | "added" | "removed" | "changed";

interface DrawnNode {
  id: string;
  kind: string;
  at: Point;
  standing: Standing;
}

const WIDTH = 168;
const HEIGHT = 48;

function drawVersions(before: LoopDocument, after: LoopDocument) {
  const ids = [...new Set([...Object.keys(before.nodes), ...Object.keys(after.nodes)])];
  const nodes = ids.map((id): DrawnNode => {
    const [old, now] = [before.nodes[id], after.nodes[id]];
    const at = after.layout[id] ?? before.layout[id] ?? [0, 0];
    return { id, kind: (now ?? old)?.kind ?? "", at, standing: standingOf(old, now) };
  });
  const places = new Map(nodes.map(({ id, at }) => [id, at]));
  const [old, now] = [edgesOf(before), edgesOf(after)];
  const edges = [...new Set([...old.keys(), ...now.keys()])].flatMap((key) => {
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
