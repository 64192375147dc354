/** How closely the graph is drawn: with whole cards, or with compact ones where whole cards could not be read. */
import { create } from "zustand";
import type { Squeeze } from "@/graph/compact";
import type { Guide } from "@/graph/guides";
import { deepEqual } from "@/lib/paths";

export const useDetail = create<{ squeeze: Squeeze | null }>()(() => ({ squeeze: null }));

type Place = { x: number; y: number };

export function toLoop({ x, y }: Place): Place {
  const by = useDetail.getState().squeeze ?? { x: 1, y: 1 };
  return { x: x / by.x, y: y / by.y };
}

export function toCanvas({ x, y }: Place): Place {
  const by = useDetail.getState().squeeze ?? { x: 1, y: 1 };
  return { x: x * by.x, y: y * by.y };
}

/** Asks the canvas, from anywhere on the page, to show the whole graph, or one node of it. */
export function reveal(node: string | null): void {
  useViewport.setState({ wish: { node } });
}

/** The latest wish; `node` is null for the whole graph. A wish that was had before is had again. */
export const useViewport = create<{ wish: { node: string | null } | null }>()(() => ({
  wish: null,
}));

/** What would happen if what is dragged were let go now: shown while it is dragged, forgotten after. */
interface DropTarget {
  /** The kind of node that is dragged from the list, which a drag tells nobody before it is dropped. */
  kind: string | null;
  /** The block that is dragged from there. */
  block: string | null;
  moved: readonly string[];
  edge: string | null;
  pool: { name: string; isLeft: boolean } | null;
  guides: readonly Guide[];
}

const NOTHING: DropTarget = {
  kind: null,
  block: null,
  moved: [],
  edge: null,
  pool: null,
  guides: [],
};

export const useDropTarget = create<DropTarget>()(() => NOTHING);

export function aimAt(target: Partial<Omit<DropTarget, "kind" | "block">>): void {
  const now = useDropTarget.getState();
  const next = { ...NOTHING, ...target, kind: now.kind, block: now.block };
  if (!deepEqual(now, next)) useDropTarget.setState(next);
}

export function clearDropTarget(): void {
  useDropTarget.setState(NOTHING);
}

/** What takes data files that are dropped at a place of the window; null where no graph can take them. */
export const useFileTaker = create<{
  take: ((files: readonly File[], at: Place) => void) | null;
}>()(() => ({ take: null }));

/** Groups of a run that were closed or opened in this tab: its loop is only looked at. */
export const useFolding = create<{ closed: Readonly<Record<string, boolean>> }>()(() => ({
  closed: {},
}));

/** Whether the next drag over the canvas cuts edges; asked for by a command, or as long as Alt is held. */
export const useEdgeCutter = create<{ isOn: boolean }>()(() => ({ isOn: false }));
