/**
 * Sizes of a drawn node. The layout, the edges and the boxes themselves count on them, so they stand in one
 * place. A node shows the ports that have an edge; the others fold away until it is pointed at.
 */
import type { Catalog, InputPort, KindInfo, OutputPort } from "@/api/types";
import { edgeFacts } from "./edges";
import type { LoopDocument } from "./types";

export const GRID = 16;
export const NODE_WIDTH = 208;
export const HEADER_HEIGHT = 48;
export const PORT_HEIGHT = 22;
export const BODY_PADDING = 6;
/** The line that says how many ports are folded away. */
export const FOLD_HEIGHT = 18;
const LIVE_LINE = 18;
const LIVE_REST = 26;
const MOST_RATES = 2;

export interface ShownPorts {
  inputs: readonly InputPort[];
  outputs: readonly OutputPort[];
  /** Without an edge. */
  foldedInputs: readonly InputPort[];
  foldedOutputs: readonly OutputPort[];
}

const NOTHING: ShownPorts = { inputs: [], outputs: [], foldedInputs: [], foldedOutputs: [] };

/** A node's ports: those in use, and those that are folded away. */
export function shownPorts(catalog: Catalog, document: LoopDocument, node: string): ShownPorts {
  const kind = kindOf(catalog, document.nodes[node]?.kind);
  if (!kind) return NOTHING;
  const facts = edgeFacts(document.edges);
  const hasEdge = (used: ReadonlySet<string>) => (port: { name: string }) =>
    used.has(`${node}.${port.name}`);
  const [isIn, isOut] = [hasEdge(facts.inputs), hasEdge(facts.outputs)];
  return {
    inputs: kind.inputs.filter(isIn),
    outputs: kind.outputs.filter(isOut),
    foldedInputs: kind.inputs.filter((port) => !isIn(port)),
    foldedOutputs: kind.outputs.filter((port) => !isOut(port)),
  };
}

/** Height of a node's box; a run shows rates below and folds nothing out. */
export function nodeHeight(
  catalog: Catalog,
  document: LoopDocument,
  node: string,
  isLive: boolean,
): number {
  const ports = shownPorts(catalog, document, node);
  const rows = Math.max(ports.inputs.length, ports.outputs.length);
  const hasFold = ports.foldedInputs.length + ports.foldedOutputs.length > 0;
  const body = rows * PORT_HEIGHT + 2 * BODY_PADDING;
  if (!isLive) return HEADER_HEIGHT + body + (hasFold ? FOLD_HEIGHT : 0);
  return HEADER_HEIGHT + body + liveHeight(rateLines(catalog, document, node));
}

/** How many of a node's stages have a line with their rate in a run: of one that nobody teaches, those that get something. */
export function rateLines(catalog: Catalog, document: LoopDocument, node: string): number {
  const kind = kindOf(catalog, document.nodes[node]?.kind);
  const { inputs } = shownPorts(catalog, document, node);
  const isTaught = inputs.some((port) => port.teaching);
  const canLearn = kind?.inputs.some((port) => port.teaching) ?? false;
  const stages =
    canLearn && !isTaught ? new Set(inputs.map((port) => port.phase)).size : kind?.stages.length;
  return Math.min(MOST_RATES, Math.max(1, stages ?? 1));
}

export function liveHeight(lines: number): number {
  return lines * LIVE_LINE + LIVE_REST;
}

/** Middle of a port's row, from the top of the node. */
export function portTop(row: number): number {
  return HEADER_HEIGHT + BODY_PADDING + row * PORT_HEIGHT + PORT_HEIGHT / 2;
}

export function kindOf(catalog: Catalog, kind: string | undefined): KindInfo | undefined {
  return catalog.kinds[kind ?? ""];
}
