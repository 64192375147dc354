/** What would happen if what is dragged were let go now: shown while it is dragged, forgotten after. */
import { create } from "zustand";
import type { Guide } from "@/document/guides";

export interface DropTarget {
  /** The kind of node that is dragged from the list, which a drag tells nobody before it is dropped. */
  kind: string | null;
  /** The nodes that are dragged. */
  moved: readonly string[];
  /** The edge in which it would be inserted. */
  edge: string | null;
  /** The pool that it would be placed in, or taken out of. */
  pool: { name: string; isLeft: boolean } | null;
  guides: readonly Guide[];
}

const NOTHING: DropTarget = { kind: null, moved: [], edge: null, pool: null, guides: [] };

export const useDropTarget = create<DropTarget>()(() => NOTHING);

export function aimAt(target: Partial<Omit<DropTarget, "kind">>): void {
  const { kind, ...now } = useDropTarget.getState();
  const next = { ...NOTHING, ...target, kind };
  const isSame =
    now.moved.join() === next.moved.join() &&
    now.edge === next.edge &&
    now.pool?.name === next.pool?.name &&
    now.pool?.isLeft === next.pool?.isLeft &&
    now.guides.length === 0 &&
    next.guides.length === 0;
  if (!isSame) useDropTarget.setState(next);
}

export function clearDropTarget(): void {
  useDropTarget.setState(NOTHING);
}
