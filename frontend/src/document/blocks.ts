/** Building blocks: what one becomes in a loop, what it is joined with, and what a selection is as a block. Pure. */
import type { Block, Bodies, Catalog, JsonObject, ModeInfo } from "@/api/types";
import { nameNodes } from "./beginNode";
import { accepts, canConnect, inputPort, outputPort } from "./canConnect";
import { portRef, portText } from "./edges";
import { cutFragment, type Fragment, fromFragmentSpec, toFragmentSpec } from "./fragment";
import { renameInNodes } from "./references";
import { type Edge, EMPTY_DOCUMENT, type LoopDocument, type PortRef } from "./types";

export const CO_TRAINING = "co-training";

/** Blocks of a mode before others; those of one's own belong to all. */
export function offersBlock(mode: Pick<ModeInfo, "name">, { is_own: isOwn, tags }: Block): boolean {
  return isOwn || tags.includes(mode.name);
}

/** The block as it begins in a loop: kinds that it mentions are nodes of the loop. Its nodes have its own names. */
export function beginBlock(catalog: Catalog, document: LoopDocument, block: Block): Fragment {
  const { nodes, edges, layout } = block;
  const fragment = fromFragmentSpec({ nodes, edges, layout } as JsonObject);
  const own = new Set(Object.keys(fragment.nodes));
  const named = Object.entries(fragment.nodes).map(([id, data]) => [
    id,
    nameNodes(catalog, document, data, own),
  ]);
  return { ...fragment, nodes: Object.fromEntries(named) };
}

/** Whether the block says where its nodes stand. */
export function isLaidOut({ nodes, layout }: Pick<Block, "nodes" | "layout">): boolean {
  return Object.keys(nodes).every((id) => id in layout);
}

export type Joint = PortRef & { isOutput: boolean };

/** The open port of the block that a wire from `joint` would go to, or null where none takes it. */
export function openFor(
  catalog: Catalog,
  document: LoopDocument,
  block: Block,
  joint: Joint,
): string | null {
  const ends = Object.keys(block.open);
  const inside = { ...EMPTY_DOCUMENT, ...fromFragmentSpec(partsOf(block)) };
  if (!joint.isOutput) {
    const wanted = inputPort(catalog, document, joint)?.type;
    const typeOf = (end: string) => outputPort(catalog, inside, portRef(end))?.type;
    const fits = (end: string) => wanted && accepts(catalog, wanted, typeOf(end) ?? "");
    return ends.find(fits) ?? null;
  }
  const type = outputPort(catalog, document, joint)?.type ?? "";
  const typeOf = (end: string) => inputPort(catalog, inside, portRef(end))?.type;
  return (
    ends.find((end) => typeOf(end) === type) ??
    ends.find((end) => accepts(catalog, typeOf(end) ?? "", type)) ??
    null
  );
}

function partsOf({ nodes, edges, layout }: Block): JsonObject {
  return { nodes, edges, layout } as JsonObject;
}

/**
 * The edges between a loop and the open ports of a block that was put into it: from the wire that it was dropped
 * with, else from a chosen node, else from the only node that gives what the port is for.
 *
 * @param placed the nodes of the block by their names in the loop, and its open ports
 */
export function joinsOf(
  catalog: Catalog,
  document: LoopDocument,
  placed: Pick<Fragment, "nodes" | "edges"> & { open: readonly string[] },
  from: { joint?: Joint | undefined; chosen?: readonly string[] },
): Edge[] {
  const own = new Set(Object.keys(placed.nodes));
  let whole: LoopDocument = {
    ...document,
    nodes: { ...document.nodes, ...placed.nodes },
    edges: [...document.edges, ...placed.edges],
  };
  const found: Edge[] = [];
  const join = (source: PortRef, target: PortRef) => {
    if (!canConnect(catalog, whole, source, target).ok) return false;
    const edge = { from: portText(source), to: portText(target) };
    found.push(edge);
    whole = { ...whole, edges: [...whole.edges, edge] };
    return true;
  };
  const outputsOf = (ids: readonly string[], type: string) =>
    ids
      .filter((node) => !isHeldOut(catalog, document, node))
      .flatMap((node) =>
        (catalog.kinds[document.nodes[node]?.kind ?? ""]?.outputs ?? [])
          .filter((port) => port.type === type)
          .map((port): PortRef => ({ node, port: port.name })),
      );
  let { joint } = from;
  for (const end of placed.open) {
    const ref = portRef(end);
    if (!own.has(ref.node)) continue;
    const input = inputPort(catalog, whole, ref);
    if (!input) {
      if (joint && !joint.isOutput && join(ref, joint)) joint = undefined;
      continue;
    }
    if (joint?.isOutput && join(joint, ref)) {
      joint = undefined;
      continue;
    }
    const chosen = outputsOf(from.chosen ?? [], input.type);
    const all = outputsOf(Object.keys(document.nodes), input.type);
    const source = chosen[0] ?? (all.length === 1 ? all[0] : undefined);
    if (source) join(source, ref);
  }
  return found;
}

/** A selection as a block: mentions of nodes that are not in it become their kinds, and ports that were fed are open. */
export function toBlock(
  catalog: Catalog,
  document: LoopDocument,
  ids: readonly string[],
): Omit<Bodies["NewBlock"], "title" | "description"> {
  const fragment = cutFragment(document, ids);
  const inside = new Set(Object.keys(fragment.nodes));
  let nodes = fragment.nodes;
  for (const [id, { kind }] of Object.entries(document.nodes)) {
    if (inside.has(id) || inside.has(kind)) continue;
    nodes = renameInNodes(nodes, { catalog, document: { ...document, nodes }, from: id, to: kind });
  }
  const open: Record<string, string> = {};
  for (const { from, to } of document.edges) {
    const [source, target] = [portRef(from), portRef(to)];
    if (inside.has(source.node) || !inside.has(target.node)) continue;
    const input = inputPort(catalog, document, target);
    if (input) open[to] = input.help;
  }
  const { edges = [], layout = {} } = toFragmentSpec({ ...fragment, nodes });
  return { nodes, edges: edges as Edge[], layout: layout as JsonObject, open };
}

/** Whether all that a node gives is only measured. */
function isHeldOut(catalog: Catalog, document: LoopDocument, node: string): boolean {
  const given = document.edges.filter(({ from }) => portRef(from).node === node);
  const kindOf = (end: string) => catalog.kinds[document.nodes[portRef(end).node]?.kind ?? ""];
  return given.length > 0 && given.every(({ to }) => kindOf(to)?.outputs.length === 0);
}
