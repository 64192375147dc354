import type { KindInfo, ModeInfo } from "@/api/types";
import { likeNeighbours } from "@/document/alike";
import { beginNode } from "@/document/beginNode";
import { fittingPort, spliceOf } from "@/document/canConnect";
import { edgeIndex, portText } from "@/document/edges";
import { freeName } from "@/document/names";
import { naturalEdges } from "@/document/natural";
import { poolField } from "@/document/pools";
import type { Point, PortRef } from "@/document/types";
import { freePlace, placeOnward } from "@/graph/freePlace";
import { select, useSelection } from "@/state/selection";
import { reveal } from "./canvas";
import { addNode, insertOnEdge } from "./commands/nodes";
import type { OpenLoop } from "./document/context";

export interface AddOptions {
  kind: KindInfo;
  at: { x: number; y: number };
  /** Whether nobody pointed at a place, and `at` is the middle of the view. */
  isUnplaced?: boolean | undefined;
  from?: (PortRef & { isOutput: boolean }) | undefined;
  edge?: string | null | undefined;
  pool?: string | null | undefined;
}

/** Adds a node as the mode begins one of its kind, connects it where it came from a port, and selects it. */
export function addNodeTo(
  { catalog, store, mode }: Pick<OpenLoop, "catalog" | "store"> & { mode: ModeInfo },
  { kind, at, isUnplaced = false, from, edge: key = null, pool = null }: AddOptions,
): string {
  const { document } = store.getState();
  const id = freeName(kind.kind, new Set(Object.keys(document.nodes)));
  const chosen = useSelection.getState().nodes.at(-1);
  const begun = likeNeighbours(
    catalog,
    document,
    beginNode(catalog, document, kind, mode),
    null,
    from?.node ?? chosen,
  );
  const field = pool === null ? null : poolField(catalog, kind.kind);
  const data = field ? { ...begun, [field]: pool } : begun;
  const place = isUnplaced
    ? placeOnward(catalog, document, kind, at, chosen)
    : freePlace(catalog, document, kind, at);
  const label = `Add ${kind.title.toLowerCase()}`;
  const position: Point = [place.x, place.y];
  const cut = key === null ? undefined : document.edges[edgeIndex(document, key)];
  const ports = cut && spliceOf(catalog, document, cut, kind.kind);
  const port = from ? fittingPort(catalog, document, from, kind) : null;
  const ends = from && port ? [portText(from), portText({ node: id, port })] : [];
  const [start, end] = from?.isOutput ? ends : ends.toReversed();
  const drawn = start && end ? [{ from: start, to: end }] : [];
  const edges = from ? drawn : naturalEdges(catalog, document, id, data);
  if (key !== null && ports) {
    const positions = { [id]: position };
    store.dispatch(insertOnEdge, { key, node: id, ports, positions, data }, { label });
  } else {
    store.dispatch(addNode, { id, data, position, edges }, { label });
  }
  select({ nodes: [id] });
  reveal(id);
  return id;
}
