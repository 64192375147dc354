/**
 * Shapes of the REST answers and stream messages, as the service sends them.
 * Knows no node kind: everything that depends on one is data of the catalog.
 */

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

export type Severity = "error" | "warning" | "hint";

export interface Change {
  op: "set" | "remove" | "insert" | "rename" | "add_edge" | "remove_edge";
  path: string;
  value?: Json;
}

export interface Fix {
  title: string;
  changes: Change[];
}

export interface Diagnostic {
  code: string;
  severity: Severity;
  message: string;
  hint?: string | null;
  node?: string | null;
  field?: string | null;
  line?: number | null;
  column?: number | null;
  fixes?: Fix[];
}

export interface InputPort {
  name: string;
  type: string;
  max: number | null;
  phase: string;
  teaching: boolean;
  required?: string | boolean | null;
  of?: string | null;
  help?: string | null;
}

export interface OutputPort {
  name: string;
  type: string;
  help?: string | null;
}

export interface KindInfo {
  kind: string;
  title: string;
  help: string;
  group: string;
  icon: string;
  stages: string[];
  inputs: InputPort[];
  outputs: OutputPort[];
  schema: JsonSchema;
  template: JsonObject;
  runnable: boolean;
}

export interface PortType {
  color: string;
  shape: string;
  handle: boolean;
  help: string;
  accepts: string[];
}

export interface AlgorithmInfo {
  name: string;
  title?: string;
  help?: string;
  formula?: string;
  defaults?: JsonObject;
  runnable?: boolean;
}

export interface NamedSchema {
  name: string;
  title?: string;
  help?: string;
  schema?: JsonSchema;
  columns?: string[];
}

export interface MetricInfo {
  title: string;
  help: string;
  expect: string;
  better: string;
  unit: string | null;
}

export interface Catalog {
  version: number;
  kinds: Record<string, KindInfo>;
  groups?: { name: string; title: string; color?: string }[];
  port_types: Record<string, PortType>;
  algorithms: Record<string, AlgorithmInfo[]>;
  rewards?: NamedSchema[];
  tasks?: NamedSchema[];
  architectures?: (string | NamedSchema)[];
  levels: string[];
  schema: Record<string, JsonSchema>;
  codes?: Record<string, string>;
  metrics?: Record<string, MetricInfo>;
  probe_metrics?: Record<string, MetricInfo>;
}

export interface Report {
  ok: boolean;
  diagnostics: Diagnostic[];
}

export interface MemoryPart {
  node: string;
  part: string;
  bytes: number;
  stages: string[];
}

export interface GpuEstimate {
  pool: string;
  index: number;
  capacity_bytes: number;
  usable_bytes: number;
  peak_bytes: number;
  peak_stage: string | null;
  fits: boolean;
  parts: MemoryPart[];
}

export interface StageEstimate {
  stage: string;
  node: string;
  seconds: number;
  samples_per_second?: number | null;
  tokens_per_second?: number | null;
  bound?: string | null;
}

export interface Estimate {
  step_seconds: number | null;
  bottleneck: string | null;
  parameters: Record<string, number>;
  gpus: GpuEstimate[];
  stages: StageEstimate[];
  rollout?: Record<
    string,
    { kv_cache_bytes: number; kv_cache_tokens: number; max_concurrent_sequences: number }
  >;
}

export interface PlanPhase {
  name: string;
  index: number;
  rounds: number;
  steps: number | null;
  ends: string;
  stages: string[];
  learn: string[];
  dead_edges: string[];
}

export interface PlanDecision {
  path?: string;
  value?: Json;
  reason?: string;
}

export interface PlanSummary {
  phases: PlanPhase[];
  decisions: PlanDecision[];
  explain: string[];
}

export interface CheckAnswer {
  report: Report;
  estimate: Estimate | null;
  plan: PlanSummary | null;
}

export interface ParseAnswer {
  spec: JsonObject | null;
  diagnostics: Diagnostic[];
  layout?: JsonObject | null;
}

export interface PatchAnswer {
  yaml: string;
  spec?: JsonObject | null;
  diagnostics?: Diagnostic[];
}

export interface LoopSummary {
  id: string;
  name: string;
  version: number;
  revision: string;
  created_at: string;
  updated_at: string;
}

export interface Loop extends LoopSummary {
  yaml: string;
  spec: JsonObject | null;
}

export interface LoopPreset {
  name: string;
  title?: string;
  description?: string;
  tags?: string[];
  runnable_here?: boolean;
}

export interface RunSummary {
  id: string;
  name: string;
  state: RunState;
  loop_id?: string | null;
  parent_id?: string | null;
  spec_hash?: string | null;
  launcher?: string | null;
  attempt?: number;
  created_at: string;
  started_at?: string | null;
  ended_at?: string | null;
  step?: number | null;
  steps_total?: number | null;
  metrics?: Record<string, number | null> | null;
  message?: string | null;
  error?: RunError | null;
}

export type RunState =
  | "queued"
  | "starting"
  | "running"
  | "stopping"
  | "stopped"
  | "finished"
  | "failed";

export interface RunError {
  code?: string;
  message: string;
  node?: string | null;
  hint?: string | null;
  traceback?: string | null;
}

/** One durable event; fields beyond the envelope depend on `type`. */
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

export interface NodeGauge {
  samples_per_second?: number | null;
  tokens_per_second?: number | null;
  busy?: number | null;
  queue?: number | null;
  staleness?: number | null;
}

export interface StageGauge {
  seconds?: number | null;
  share?: number | null;
  samples_per_second?: number | null;
  tokens_per_second?: number | null;
}

export interface Gauges {
  at: string;
  run: string;
  attempt?: number;
  state?: RunState;
  step?: number | null;
  steps_total?: number | null;
  phase?: string | null;
  phase_step?: number | null;
  phase_steps?: number | null;
  stage?: string | null;
  eta_seconds?: number | null;
  step_seconds?: number | null;
  progress?: { stage: string; done: number; total: number | null; unit?: string | null } | null;
  nodes?: Record<string, NodeGauge>;
  stages?: Record<string, StageGauge>;
  bottleneck?: string | null;
  memory?: Record<string, number>;
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
