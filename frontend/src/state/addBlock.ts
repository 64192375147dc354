import type { Block } from "@/api/types";
import { beginBlock, isLaidOut, type Joint, joinsOf } from "@/document/blocks";
import { portRef } from "@/document/edges";
import { namesIn, placeFragment } from "@/document/fragment";
import { newGroupName } from "@/document/groups";
import { EMPTY_DOCUMENT } from "@/document/types";
import { partsOnward, placeParts } from "@/graph/freePlace";
import { arrange } from "@/graph/layout";
import { reveal } from "./canvas";
import { pasteItems } from "./commands/nodes";
import type { OpenLoop } from "./document/context";
import { select, useSelection } from "./selection";

interface AddBlock {
  block: Block;
  at: { x: number; y: number };
  /** Whether nobody pointed at a place, and `at` is the middle of the view. */
  isUnplaced?: boolean | undefined;
  from?: Joint | undefined;
}

/** Inserts a block as one step: under free names, joined with what is there for its open ports, and selected. */
export function addBlock(
  { catalog, store }: Pick<OpenLoop, "catalog" | "store">,
  { block, at, isUnplaced = false, from }: AddBlock,
): void {
  const { document, isReadonly } = store.getState();
  if (isReadonly) return;
  const begun = beginBlock(catalog, document, block);
  const names = namesIn(begun, document);
  const named = placeFragment(catalog, begun, document, [0, 0]);
  const open = Object.keys(block.open).map((end) => {
    const { node, port } = portRef(end);
    return `${names.get(node) ?? node}.${port}`;
  });
  const chosen = useSelection.getState().nodes;
  const joins = joinsOf(catalog, document, { ...named, open }, { joint: from, chosen });
  const parts = { ...EMPTY_DOCUMENT, ...named };
  const layout = isLaidOut(block) ? named.layout : arrange(catalog, parts);
  const fragment = { ...named, layout, edges: [...named.edges, ...joins] };
  const own = new Set(Object.keys(named.nodes));
  const others = joins
    .flatMap((edge) => [portRef(edge.from).node, portRef(edge.to).node])
    .filter((id) => !own.has(id));
  const wish = isUnplaced ? partsOnward(catalog, fragment, document, at, others) : at;
  const placed = { ...fragment, layout: placeParts(catalog, fragment, document, wish) };
  const isBeside = Object.keys(document.nodes).length > 0 && own.size > 2;
  const group = isBeside ? { group: newGroupName(document, block.title) } : {};
  store.dispatch(pasteItems, { fragment: placed, ...group }, { label: `Insert ${block.title}` });
  select({ nodes: [...own] });
  reveal(null);
}
