import type {
  Estimate,
  GpuEstimate,
  MemoryPart,
  PhaseEstimate,
  PredictedTime,
  SpanEstimate,
} from "@/api/types";
import { bytesIn, stagesOf } from "@/lib/estimate";

export interface Pool {
  name: string;
  first: number;
  gpus: GpuEstimate[];
}

export function poolsOf(estimate: Estimate): Pool[] {
  const pools: Pool[] = [];
  for (const [at, gpu] of estimate.gpus.entries()) {
    const last = pools.at(-1);
    if (last && last.name === gpu.pool) last.gpus.push(gpu);
    else pools.push({ name: gpu.pool, first: at, gpus: [gpu] });
  }
  return pools;
}

export const verbOf = (stage: string) => stage.slice(stage.lastIndexOf(".") + 1);
export const nodeOf = (stage: string) => stage.slice(0, stage.lastIndexOf("."));

/** GPUs of a pool by number: "GPU 0-5"; of a loop that runs on none its processes: "CPU", "CPU 0-5". */
export function gpuRange({ first, gpus }: Pool, isOnCpu: boolean): string {
  const last = first + gpus.length - 1;
  if (isOnCpu) return last === 0 ? "CPU" : first === last ? `CPU ${first}` : `CPU ${first}-${last}`;
  return first === last ? `GPU ${first}` : `GPU ${first}-${last}`;
}

export function verbsOf(estimate: Estimate): string[] {
  const known = new Set(estimate.gpus.flatMap((gpu) => stagesOf(gpu).map(verbOf)));
  const inOrder = estimate.stages.map((stage) => verbOf(stage.stage));
  return [...new Set(inOrder)].filter((verb) => known.has(verb));
}

export function fullestStage(gpu: GpuEstimate, verb: string): string | null {
  const sums = stagesOf(gpu)
    .filter((stage) => verbOf(stage) === verb)
    .map((stage) => ({ stage, bytes: bytesIn(gpu, stage) }));
  return sums.toSorted((a, b) => b.bytes - a.bytes)[0]?.stage ?? null;
}

export function largestPart(gpu: GpuEstimate): MemoryPart | null {
  const there = gpu.parts.filter((part) => part.stages.includes(gpu.peak_stage));
  return there.toSorted((a, b) => b.bytes - a.bytes)[0] ?? null;
}

export interface Role {
  node: string;
  verb: string;
}

const PLACED = ["generate", "score", "learn"];

export function rolesIn(
  pool: string,
  time: PredictedTime | null,
  gpus: readonly GpuEstimate[] = [],
): Role[] {
  const spans = (time?.phases ?? []).flatMap((phase) => phase.spans);
  const timed = spans.filter((one) => one.pool === pool).map((one) => one.stage);
  const held = gpus.flatMap(({ parts }) => parts.flatMap(({ stages }) => stages));
  return [...new Set(spans.length > 0 ? timed : held)]
    .map((stage) => ({ node: nodeOf(stage), verb: verbOf(stage) }))
    .filter((role) => PLACED.includes(role.verb));
}

export function roleLabel({ node, verb }: Role, roles: readonly Role[]): string {
  if (node === roles[0]?.node) return verb;
  return roles.filter((role) => role.node === node).length > 1 ? `${node} ${verb}` : node;
}

export function mainPhase(time: PredictedTime | null): PhaseEstimate | null {
  return time?.phases.find((phase) => phase.name === time.main) ?? null;
}

export interface Share {
  stage: string;
  seconds: number;
}

/** Stages of a step, longest first within none: as they run. Those too short to see are left out. */
export function stepShares(phase: PhaseEstimate | null): Share[] {
  const spans = phase?.spans ?? [];
  const whole = spans.reduce((sum, one) => sum + one.end - one.start, 0);
  return spans
    .map((one) => ({ stage: one.stage, seconds: one.end - one.start }))
    .filter((one) => one.seconds > whole * 0.002);
}

export function verbShares(shares: readonly Share[]): { verb: string; seconds: number }[] {
  const sums = new Map<string, number>();
  for (const { stage, seconds } of shares) {
    sums.set(verbOf(stage), (sums.get(verbOf(stage)) ?? 0) + seconds);
  }
  return [...sums].map(([verb, seconds]) => ({ verb, seconds }));
}

export function limitOf(phase: PhaseEstimate | null): { stage: string; share: number } | null {
  const longest = stepShares(phase).toSorted((a, b) => b.seconds - a.seconds)[0];
  if (!longest || !phase?.step_seconds) return null;
  return { stage: longest.stage, share: Math.min(longest.seconds / phase.step_seconds, 1) };
}

export function idleShare(pool: string, phase: PhaseEstimate): number {
  const busy = phase.spans
    .filter((one) => one.pool === pool)
    .reduce((sum, one) => sum + one.end - one.start, 0);
  const end = stepEnd(phase.spans);
  return end > 0 ? Math.max(1 - busy / end, 0) : 0;
}

export function stepEnd(spans: readonly SpanEstimate[]): number {
  return Math.max(...spans.map((one) => one.end), 0);
}
