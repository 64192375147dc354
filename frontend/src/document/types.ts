/**
 * The document: a loop as the user edits it, plus where its boxes stand.
 *
 * Values are sparse: a field that the user did not set is absent. Knows no node kind and no field;
 * the server says what is valid.
 */
import type { Json, JsonObject } from "@/api/types";

export interface NodeData extends JsonObject {
  kind: string;
}

export interface Edge {
  from: string;
  to: string;
  id?: string;
  [option: string]: Json | undefined;
}

export type Point = [number, number];

/** Words for people, on the canvas beside the boxes. */
export interface Note {
  at: Point;
  size: Point;
  text: string;
}

export interface LoopDocument {
  name: string;
  nodes: Record<string, NodeData>;
  edges: Edge[];
  layout: Record<string, Point>;
  /** Which colour each learner has, from its creation until it is deleted. */
  identities?: Record<string, number>;
  /** Kept with the places; absent where there are none. */
  notes?: Record<string, Note>;
  /** Its cards show what their nodes do in a run, and not their values. */
  isRunView?: true;
  /** Everything else at the top of a loop: mode, schedule, hardware, run, ... */
  rest: JsonObject;
  /** What the page could not read of nodes and edges; absent where it read all. */
  unread?: Unread;
}

export interface Unread {
  nodes: Record<string, Json>;
  /** In the order of the file, with their positions in its list. */
  edges: { at: number; value: Json }[];
  /** Whatever else a layout holds besides the places of boxes and notes. */
  layout?: JsonObject;
}

export interface PortRef {
  node: string;
  port: string;
}

export const EMPTY_DOCUMENT: LoopDocument = {
  name: "untitled",
  nodes: {},
  edges: [],
  layout: {},
  rest: { coloop: 1, mode: "online" },
};
