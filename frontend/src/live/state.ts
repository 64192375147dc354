/** What the events of one run add up to. Mutable; `LiveRun` tells its watchers what changed. */
import type { Gauges, JsonObject, RunError, RunState } from "@/api/types";
import type { Checkpoint, Mark } from "./marks";
import type { Series } from "./series";

export interface PhaseMark {
  name: string;
  round: number;
  /** The first step of it; null until a step is known. */
  step: number | null;
}

export interface StageSpan {
  stage: string;
  node: string;
  phase: string;
  step: number | null;
  /** Where it ran; null: in the driver. */
  pool: string | null;
  start: number;
  end: number | null;
  samples: number;
  tokens: number;
  /** Seconds for which it waited for what it reads. */
  starved: number;
  /** Seconds for which others were at work in its pool. */
  blocked: number;
  /** Seconds for which each rank of its pool had work, where there are several. */
  ranks: readonly number[];
  /** The probe for which it ran; null: for the step. */
  evaluation: string | null;
}

export interface LogLine {
  seq: number;
  at: string;
  level: "debug" | "info" | "warning" | "error";
  source: string;
  node: string | null;
  step: number | null;
  message: string;
  detail?: unknown;
}

export interface LiveAlert {
  seq: number;
  /** The event that raised it, by which the service knows it. */
  raised: number;
  level: "warning" | "error";
  code: string;
  node: string | null;
  step: number | null;
  message: string;
  hint: string | null;
  metric: string | null;
  count: number;
}

export interface RunEdit {
  attempt: number;
  step: number | null;
  changes: JsonObject;
}

export class LiveState {
  lastSeq = 0;
  /** False where curves or lists lack what came first: the run is long, and the service has it. */
  isWhole = true;
  attempt = 1;
  state: RunState | null = null;
  message: string | null = null;
  error: RunError | null = null;
  step: number | null = null;
  phases: PhaseMark[] = [];
  series = new Map<string, Map<string, Series>>();
  spans: StageSpan[] = [];
  running = new Map<string, StageSpan>();
  /** By stage, the `seq` of the event that it finished with last. */
  finished = new Map<string, number>();
  sampleSteps: number[] = [];
  lines: LogLine[] = [];
  marks: Mark[] = [];
  checkpoints: readonly Checkpoint[] = [];
  alerts: readonly LiveAlert[] = [];
  edits: readonly RunEdit[] = [];
  refusedEdits = 0;
  gauges: Gauges | null = null;
}
