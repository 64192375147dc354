import { useMemo } from "react";
import type { LoopDocument } from "@/document/types";
import { withPlaces } from "@/graph/layout";
import { useCatalog } from "@/state/document/context";
import { type DrawnNode, drawVersions, HEIGHT, type Standing, WIDTH } from "./drawVersions";

const LOOK: Record<Standing, { mark: string; said: string; ink: string; ground: string }> = {
  same: { mark: "", said: "", ink: "var(--line-strong)", ground: "var(--surface)" },
  added: { mark: "+", said: "added", ink: "var(--success)", ground: "var(--success-soft)" },
  removed: { mark: "−", said: "removed", ink: "var(--error)", ground: "var(--error-soft)" },
  changed: { mark: "~", said: "changed", ink: "var(--warning)", ground: "var(--warning-soft)" },
};
/** Room for edges that lead back. */
const EDGE = 88;

/** Two versions of a loop, one over the other: what came, what went and what is different. */
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
      {mark ? (
        <>
          <circle cx={WIDTH} cy={0} r={10} fill={ink} />
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
        </>
      ) : null}
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
