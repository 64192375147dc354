/**
 * The API's shapes, which are generated from its description, other names for some of them, and the shape of events
 * as the page trusts them.
 * Knows no node kind: everything that depends on one is data of the catalog.
 */
import type { Json, JsonObject } from "./json";
import type { components, Gauges, Loop, operations, SavedDocument } from "./schema.gen";

export type * from "./schema.gen";
export type { Json, JsonObject };

/** By name, for what requests bring. */
export type Bodies = components["schemas"];
export type RunQuery = NonNullable<operations["listRuns"]["parameters"]["query"]>;
export type EventQuery = NonNullable<operations["listRunEvents"]["parameters"]["query"]>;
export type CurveQuery = operations["listRunSeries"]["parameters"]["query"];
export type CurvesQuery = NonNullable<operations["getRunSeries"]["parameters"]["query"]>;

export type InputPort = Bodies["InputInfo"];
export type OutputPort = Bodies["OutputInfo"];
export type MetricInfo = Bodies["Metric"];
export type MemoryPart = Bodies["PartEstimate"];
export type FitAnswer = Bodies["FitResult"];
export type PlaceAnswer = Bodies["PlaceResult"];
export type PlannedDecision = Bodies["Decision"];
export type CheckAnswer = Bodies["CheckResult"];
export type WrittenDocument = Omit<SavedDocument, "revision">;
export interface DocumentConflict {
  theirs: Loop;
  mine: WrittenDocument;
}
export type LoopPreset = Bodies["LoopPresetEntry"];
export type AboutPreset = Bodies["About"];
export type RunState = Bodies["RunStateName"];
export type RunSummary = Bodies["Run"];
export type GaugesPage = Bodies["RunGauges"];
export type RowsFrom = Bodies["AskScores"]["rows"];
export type ScoredRows = Bodies["Scores"];

/** One durable event. An older page may watch a newer run, so fields beyond the envelope are not trusted. */
export interface RunEvent {
  seq: number;
  at: string;
  run: string;
  attempt: number;
  type: string;
  node?: string | null;
  step?: number | null;
  [key: string]: unknown;
}

export type EventPage = Omit<Bodies["RunEvents"], "events"> & { events: RunEvent[] };
export type MarksPage = Omit<Bodies["RunMarks"], "events"> & { events: RunEvent[] };

export type StreamMessage =
  | { kind: "hello"; run: RunSummary; seq: number }
  | { kind: "events"; events: RunEvent[] }
  | { kind: "gauges"; gauges: Gauges }
  | { kind: "ping"; at: string }
  | { kind: "end"; run: RunSummary };
