/** How closely the graph is drawn: with whole cards, or with compact ones where whole cards could not be read. */
import { create } from "zustand";

/** How the loop's places and sizes become those of a graph of compact cards. */
export interface Squeeze {
  /** A place of the loop times these is its place on the canvas. */
  x: number;
  y: number;
  /** The same for the size of a card, which also takes some of the room around it. */
  width: number;
  height: number;
  /** The least between a card and the one below it. */
  gap: number;
  /** The zoom at which all of the graph is seen. */
  zoom: number;
  /** From one track of the learning lane to the next, in pixels of the window. */
  track: number;
}

interface Detail {
  /** Null where cards are drawn whole. */
  squeeze: Squeeze | null;
}

export const useDetail = create<Detail>()(() => ({ squeeze: null }));

interface Place {
  x: number;
  y: number;
}

/** Where in the loop a place of the canvas is. */
export function toLoop({ x, y }: Place): Place {
  const { squeeze } = useDetail.getState();
  return squeeze === null ? { x, y } : { x: x / squeeze.x, y: y / squeeze.y };
}

/** Where on the canvas a place of the loop is. */
export function toCanvas({ x, y }: Place): Place {
  const { squeeze } = useDetail.getState();
  return squeeze === null ? { x, y } : { x: x * squeeze.x, y: y * squeeze.y };
}
