/**
 * Shapes of the REST answers and stream messages. What the API describes is generated from it; what it
 * sends as plain JSON (specs, events, the catalog) has its shape here.
 * Knows no node kind: everything that depends on one is data of the catalog.
 */
import type { components } from "./schema.gen";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json | undefined };
export type JsonObject = { [key: string]: Json | undefined };

export interface JsonSchema {
  [key: string]: unknown;
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  type?: string | string[];
  title?: string;
  description?: string;
  default?: Json;
  const?: Json;
  enum?: Json[];
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  additionalProperties?: boolean | JsonSchema;
  items?: JsonSchema | boolean;
  prefixItems?: JsonSchema[];
  discriminator?: { propertyName: string; mapping?: Record<string, string> };
}

type Schemas = components["schemas"];

export type Severity = Schemas["Severity"];
export type Change = Omit<Schemas["Change"], "value"> & { value?: Json };
export type Fix = Omit<Schemas["Fix"], "changes"> & { changes: Change[] };
export type Diagnostic = Omit<Schemas["Diagnostic"], "fixes"> & { fixes: Fix[] };

export type InputPort = Schemas["InputInfo"];
export type OutputPort = Schemas["OutputInfo"];
export type MetricInfo = Schemas["Metric"];

/** Values within the catalog are plain JSON, which the API can only call unknown. */
export type KindInfo = Omit<Schemas["KindInfo"], "schema" | "template"> & {
  schema: JsonSchema;
  template: JsonObject;
};
export type AlgorithmInfo = Omit<Schemas["AlgorithmInfo"], "defaults"> & { defaults: JsonObject };
export type Catalog = Omit<Schemas["Catalog"], "kinds" | "algorithms" | "schema"> & {
  kinds: Record<string, KindInfo>;
  algorithms: Record<string, AlgorithmInfo[]>;
  schema: Record<string, JsonSchema>;
};

export type Estimate = Schemas["Estimate"];
export type GpuEstimate = Schemas["GpuEstimate"];
export type MemoryPart = Schemas["PartEstimate"];
export type StageEstimate = Schemas["StageEstimate"];
export type PlanSummary = Schemas["PlanSummary"];
export type PlannedPhase = Schemas["PlannedPhase"];
export type PlannedProbe = Schemas["PlannedProbe"];
export type PlannedStage = Schemas["PlannedStage"];
export type CheckAnswer = Omit<Schemas["CheckResult"], "report"> & {
  report: { ok: boolean; diagnostics: Diagnostic[] };
};

/** Specs travel as plain JSON; the document gives them shape. */
type WithSpec<T> = Omit<T, "spec"> & { spec: JsonObject | null };

export interface ParseAnswer {
  spec: JsonObject | null;
  diagnostics: Diagnostic[];
  layout: JsonObject | null;
}
export type PatchAnswer = WithSpec<Schemas["PatchResult"]>;
export type LoopSummary = Schemas["LoopSummary"];
export type Loop = WithSpec<Schemas["Loop"]>;
export type LoopVersion = Schemas["LoopVersion"];
export type VersionDiff = Schemas["VersionDiff"];
export type LoopPreset = Schemas["LoopPresetEntry"];
export type LoopPresetText = WithSpec<Schemas["LoopPresetText"]>;

export type RunState = Schemas["RunStateName"];
export type RunSummary = Schemas["Run"];
export type RunError = Schemas["RunError"];
export type RunSpec = WithSpec<Schemas["RunSpec"]>;
export type Gauges = Schemas["Gauges"];

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

export interface EventPage {
  events: RunEvent[];
  last_seq: number;
  has_more: boolean;
}

export type StreamMessage =
  | { kind: "hello"; run: RunSummary; seq: number }
  | { kind: "events"; events: RunEvent[] }
  | { kind: "gauges"; gauges: Gauges }
  | { kind: "ping"; at: string }
  | { kind: "end"; run: RunSummary };

/** What a model wrote, and what it was worth. */
export interface SampleRow {
  seq: number;
  step?: number | null;
  /** Who wrote it. */
  node?: string | null;
  id?: string;
  prompt?: unknown;
  completion?: unknown;
  reward?: number | null;
  advantage?: number | null;
  scores?: Record<string, number | null>;
  group?: string | number | null;
  [key: string]: unknown;
}

export interface SamplePage {
  rows: SampleRow[];
  steps: number[];
}
