/**
 * Names of the API's shapes, which are generated from its description, and the shape of events as the page trusts
 * them.
 * Knows no node kind: everything that depends on one is data of the catalog.
 */
import type { Json, JsonObject } from "./json";
import type { components, operations } from "./schema.gen";

export type { Json, JsonObject };

type Schemas = components["schemas"];
export type Bodies = Pick<
  Schemas,
  | "AskOverlap"
  | "AskRows"
  | "AskScores"
  | "AskTokens"
  | "ChangeRun"
  | "CompareValues"
  | "EditDocument"
  | "EditRun"
  | "FitLoop"
  | "ForkRun"
  | "LoopInput"
  | "LoopText"
  | "NewRun"
>;
export type RunQuery = NonNullable<operations["listRuns"]["parameters"]["query"]>;
export type EventQuery = NonNullable<operations["listRunEvents"]["parameters"]["query"]>;
export type CurveQuery = operations["listRunSeries"]["parameters"]["query"];

export type Severity = Schemas["Severity"];
export type Change = Schemas["Change"];
export type Fix = Schemas["Fix"];
export type Diagnostic = Schemas["Diagnostic"];

export type JsonSchema = Schemas["JsonSchema"];
export type InputPort = Schemas["InputInfo"];
export type OutputPort = Schemas["OutputInfo"];
export type MetricInfo = Schemas["Metric"];
export type KindInfo = Schemas["KindInfo"];
export type ModeInfo = Schemas["ModeInfo"];
export type AlgorithmInfo = Schemas["AlgorithmInfo"];
export type Catalog = Schemas["Catalog"];

export type Estimate = Schemas["Estimate"];
export type GpuEstimate = Schemas["GpuEstimate"];
export type MemoryPart = Schemas["PartEstimate"];
export type StageEstimate = Schemas["StageEstimate"];
export type PhaseEstimate = Schemas["PhaseEstimate"];
export type SpanEstimate = Schemas["SpanEstimate"];
export type PredictedTime = Schemas["PredictedTime"];
export type FitAnswer = Schemas["FitResult"];
export type FittedValue = Schemas["FittedValue"];
export type FitWay = Schemas["FitWay"];
export type PlaceAnswer = Schemas["PlaceResult"];
export type Placed = Schemas["Placed"];
export type BackendOfLearner = Schemas["BackendOfLearner"];
export type BatchBreakdown = Schemas["BatchBreakdown"];
export type BatchCount = Schemas["BatchCount"];
export type PlanSummary = Schemas["PlanSummary"];
export type PlannedDecision = Schemas["Decision"];
export type PlannedPhase = Schemas["PlannedPhase"];
export type PlannedProbe = Schemas["PlannedProbe"];
export type PlannedStage = Schemas["PlannedStage"];
export type CheckAnswer = Schemas["CheckResult"];
export type LoopSummary = Schemas["LoopSummary"];
export type Loop = Schemas["Loop"];
export type SavedDocument = Schemas["SavedDocument"];
export type WrittenDocument = Omit<SavedDocument, "revision">;
export interface DocumentConflict {
  theirs: Loop;
  mine: WrittenDocument;
}
export type LoopVersion = Schemas["LoopVersion"];
export type VersionDiff = Schemas["VersionDiff"];
export type LoopPreset = Schemas["LoopPresetEntry"];
export type LoopPresetText = Schemas["LoopPresetText"];
export type Sketch = Schemas["Sketch"];
export type AboutPreset = Schemas["About"];
export type AlgorithmHelp = Schemas["AlgorithmHelp"];
export type MathElement = Schemas["MathElement"];

export type RunState = Schemas["RunStateName"];
export type RunSummary = Schemas["Run"];
export type RunError = Schemas["RunError"];
export type RunReport = Schemas["RunReport"];
export type RunSpec = Schemas["RunSpec"];
export type RunCurves = Schemas["RunCurves"];
export type RunSeries = Schemas["RunSeries"];
export type SpecChange = Schemas["SpecChange"];
export type CurvesQuery = NonNullable<operations["getRunSeries"]["parameters"]["query"]>;
export type SampleTokens = Schemas["SampleTokens"];
export type SampleRow = Schemas["SampleRow"];
export type Gauges = Schemas["Gauges"];
export type GaugesPage = Schemas["RunGauges"];

export type RowsFrom = Schemas["AskScores"]["rows"];
export type ScoredRows = Schemas["Scores"];
export type ScoredRow = Schemas["ScoredRow"];
export type SourceScores = Schemas["SourceScores"];
export type DatasetPage = Schemas["DatasetPage"];
export type TokenizedRows = Schemas["TokenizedRows"];
export type TokenText = Schemas["TokenText"];
export type Lengths = Schemas["Lengths"];
export type Overlap = Schemas["Overlap"];

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

export interface MarksPage {
  seq: number;
  events: RunEvent[];
}

export type StreamMessage =
  | { kind: "hello"; run: RunSummary; seq: number }
  | { kind: "events"; events: RunEvent[] }
  | { kind: "gauges"; gauges: Gauges }
  | { kind: "ping"; at: string }
  | { kind: "end"; run: RunSummary };
