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

export interface Note {
  at: Point;
  size: Point;
  text: string;
}

/** Nodes with a frame around them, by name, or all of a pool; closed, they are drawn as one card. */
export interface Group {
  nodes?: string[];
  pool?: string;
  closed?: true;
}

export interface LoopDocument {
  name: string;
  nodes: Record<string, NodeData>;
  edges: Edge[];
  layout: Record<string, Point>;
  identities?: Record<string, number>;
  notes?: Record<string, Note>;
  groups?: Record<string, Group>;
  isRunView?: true;
  /** Everything else at the top of a loop: mode, schedule, hardware, run, ... */
  rest: JsonObject;
  /** What the page could not read of nodes and edges; absent where it read all. */
  unread?: Unread;
}

export interface Unread {
  nodes: Record<string, Json>;
  edges: { at: number; value: Json }[];
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
