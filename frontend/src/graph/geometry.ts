/**
 * Sizes of a drawn node. The layout, the edges and the boxes themselves count on them, so they stand in one
 * place. A node shows the ports that have an edge; the others fold away until they are asked for.
 */
import { isDraft } from "immer";
import type { Catalog, InputPort, KindInfo, OutputPort } from "@/api/types";
import { isOfUse } from "@/catalog/shapes";
import { edgeFacts } from "@/document/edges";
import { isLearner } from "@/document/identities";
import type { LoopDocument, NodeData, Point } from "@/document/types";
import { cardValues } from "./cardValues";
import { type EdgeKinds, edgeKinds } from "./edgeKinds";
import { type Area, areaOf, type Box, union } from "./shapes";

export const GRID = 16;
export const NODE_WIDTH = 224;
export const MIN_WIDTH = 144;
export const HEADER_HEIGHT = 46;
const PORT_HEIGHT = 24;
const FOLD_HEIGHT = 22;
const VALUE_HEIGHT = 26;
const VALUES_AROUND = 11;
const LEARN_HEIGHT = 30;
export const METRIC_HEIGHT = 48;
export const STATE_HEIGHT = 28;
const BODY_END = 6;

export interface ShownPorts {
  inputs: readonly InputPort[];
  outputs: readonly OutputPort[];
  foldedInputs: readonly InputPort[];
  foldedOutputs: readonly OutputPort[];
}

const NOTHING: ShownPorts = { inputs: [], outputs: [], foldedInputs: [], foldedOutputs: [] };

export interface Size {
  width: number;
  height: number;
}

/**
 * A node's ports at its sides: those in use, and of the others those that its settings can make use of, folded
 * away. What teaches is at the bottom.
 */
export function shownPorts(catalog: Catalog, document: LoopDocument, node: string): ShownPorts {
  const data = document.nodes[node];
  const kind = kindOf(catalog, data?.kind);
  if (!kind) return NOTHING;
  const facts = edgeFacts(document.edges);
  const ways = edgeKinds(catalog, document);
  const isFree = (port: InputPort | OutputPort, used: ReadonlySet<string>) =>
    !used.has(`${node}.${port.name}`) && isOfUse(port, kind, data);
  return {
    inputs: kind.inputs.filter(({ name }) => ways.left.has(`${node}.${name}`)),
    outputs: kind.outputs.filter(({ name }) => ways.right.has(`${node}.${name}`)),
    foldedInputs: kind.inputs.filter((port) => isFree(port, facts.inputs)),
    foldedOutputs: kind.outputs.filter((port) => isFree(port, facts.outputs)),
  };
}

/** Size of a node's box. In a run it shows what the node does in the place of its values, and folds nothing out. */
export function nodeSize(catalog: Catalog, document: LoopDocument, node: string): Size {
  const data = document.nodes[node];
  if (!data || isDraft(document)) return measure(catalog, document, node);
  const ways = edgeKinds(catalog, document);
  const isRunView = document.isRunView === true;
  const last = known.get(data);
  if (last?.node === node && last.ways === ways && last.isRunView === isRunView) return last.size;
  const size = measure(catalog, document, node);
  known.set(data, { node, ways, isRunView, size });
  return size;
}

/** Of every node as it is: what it is joined with decides as well. */
const known = new WeakMap<
  NodeData,
  { node: string; ways: EdgeKinds; isRunView: boolean; size: Size }
>();

function measure(catalog: Catalog, document: LoopDocument, node: string): Size {
  const ports = shownPorts(catalog, document, node);
  const ways = edgeKinds(catalog, document);
  const kind = kindOf(catalog, document.nodes[node]?.kind);
  const isTaught = isLearner(catalog, document, node);
  const { isRunView = false } = document;
  const values = isRunView ? [] : cardValues(catalog, document, node);
  const rows = Math.max(ports.inputs.length, ports.outputs.length);
  const hasFold = !isRunView && ports.foldedInputs.length + ports.foldedOutputs.length > 0;
  const widths = [
    NAME_AROUND + Math.max(textWidth(node, 14), textWidth(kind?.title ?? "", 12)),
    ...Array.from({ length: rows }, (_, row) => portsWidth(ports, row)),
    ...values.map(({ label }) => 24 + textWidth(label, 12) + VALUE_ROOM),
    isTaught ? LEARN_ROOM : ways.leaderOf.has(node) ? MIN_WIDTH : isRunView ? LIVE_ROOM : OWN_ROOM,
    [...ways.leaderOf.values()].includes(node) ? NODE_WIDTH : 0,
  ];
  const width = Math.ceil(Math.max(...widths) / GRID) * GRID;
  const still =
    (hasFold ? FOLD_HEIGHT : 0) +
    (values.length > 0 ? values.length * VALUE_HEIGHT + VALUES_AROUND : 0);
  const height =
    HEADER_HEIGHT +
    rows * PORT_HEIGHT +
    (rows > 0 || hasFold ? BODY_END : 0) +
    (isRunView ? liveHeight(catalog, document, node) : still) +
    (isTaught ? LEARN_HEIGHT : 0);
  return { width: Math.min(NODE_WIDTH, Math.max(MIN_WIDTH, width)), height };
}

const NAME_AROUND = 61;
const VALUE_ROOM = 74;
const LEARN_ROOM = 192;
const LIVE_ROOM = 160;
const OWN_ROOM = 176;

function portsWidth({ inputs, outputs }: ShownPorts, row: number): number {
  return 26 + textWidth(inputs[row]?.name ?? "", 12) + 16 + textWidth(outputs[row]?.name ?? "", 12);
}

/** Whether a node is measured by a number of its own: what scores, what is taught, what evaluates. */
export function hasMetric(catalog: Catalog, document: LoopDocument, node: string): boolean {
  const kind = kindOf(catalog, document.nodes[node]?.kind);
  if (isLearner(catalog, document, node)) return true;
  const isScorer =
    kind?.stages.includes("score") && kind.outputs.some(({ type }) => type === "Scores");
  return isScorer === true || kind?.outputs.length === 0;
}

function liveHeight(catalog: Catalog, document: LoopDocument, node: string): number {
  return (hasMetric(catalog, document, node) ? METRIC_HEIGHT : 0) + STATE_HEIGHT;
}

export function portTop(row: number): number {
  return HEADER_HEIGHT + row * PORT_HEIGHT + PORT_HEIGHT / 2;
}

export function foldTop(rows: number): number {
  return HEADER_HEIGHT + rows * PORT_HEIGHT + FOLD_HEIGHT / 2;
}

export function kindOf(catalog: Catalog, kind: string | undefined): KindInfo | undefined {
  return catalog.kinds[kind ?? ""];
}

/** How wide a text of the page's font is, near enough to plan room for it before it is drawn. Pure. */

/** Shares of the font's size, of the semibold cut: a plan that is too wide does no harm. */
const NARROW = 0.32;
const SMALL = 0.42;
const USUAL = 0.62;
const WIDE = 0.72;
const WIDEST = 0.95;

const SHARES = new Map<string, number>([
  ...[..."iljI.,:;'|!"].map((one) => [one, NARROW] as const),
  ...[..."ftr()[]/-· "].map((one) => [one, SMALL] as const),
  ...[..."ABCDEGHKNOPQRSTUVXYZ&"].map((one) => [one, WIDE] as const),
  ...[..."mwMW@%—→"].map((one) => [one, WIDEST] as const),
]);

export function textWidth(text: string, size: number): number {
  let width = 0;
  for (const one of text) width += SHARES.get(one) ?? USUAL;
  return Math.ceil(width * size);
}

export function boxesOf(
  catalog: Catalog,
  document: LoopDocument,
  ids: readonly string[] = Object.keys(document.nodes),
): Box[] {
  return ids.flatMap((id) => {
    const place: Point | undefined = id in document.nodes ? document.layout[id] : undefined;
    if (!place) return [];
    const [x, y] = place;
    return [{ id, x, y, ...nodeSize(catalog, document, id) }];
  });
}

export function areaAround(boxes: readonly Box[]): Area | null {
  return boxes.length === 0 ? null : union(boxes.map(areaOf));
}

export function middleOf({ x, y, width, height }: Box): Point {
  return [x + width / 2, y + height / 2];
}

export function isInside({ left, top, right, bottom }: Area, [x, y]: Point): boolean {
  return x >= left && x <= right && y >= top && y <= bottom;
}
