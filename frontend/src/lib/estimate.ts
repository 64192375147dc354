/** The estimate as the memory bar shows it: equal GPUs together, parts at the worst moment. Pure. */
import type { Estimate, GpuEstimate, MemoryPart } from "@/api/types";

export interface GpuGroup {
  key: string;
  pool: string;
  first: number;
  last: number;
  gpu: GpuEstimate;
}

/** One that does not fit, else the fullest: what decides whether all of them do. */
export function worstOf(gpus: readonly GpuEstimate[]): GpuEstimate | null {
  const unfit = (gpu: GpuEstimate) => Number(gpu.fits === false);
  const fullness = (gpu: GpuEstimate) => (gpu.peak_bytes ?? 0) / Math.max(gpu.usable_bytes, 1);
  const [worst] = gpus.toSorted((a, b) => unfit(b) - unfit(a) || fullness(b) - fullness(a));
  return worst ?? null;
}

/** By how much a GPU is over at its peak, or in one stage; 0 where that is within. */
export function overOf(gpu: GpuEstimate, stage: string | null = null): number {
  const used = stage === null ? (gpu.peak_bytes ?? 0) : bytesIn(gpu, stage);
  return Math.max(used - gpu.usable_bytes, 0);
}

/** What is free beside the peak, less than nothing where it is too much; null: not known. */
export function spareOf(gpu: GpuEstimate): number | null {
  return gpu.peak_bytes === null ? null : gpu.usable_bytes - gpu.peak_bytes;
}

export function longerBy(
  seconds: number | null | undefined,
  before: number | null | undefined,
): number | null {
  return typeof seconds === "number" && typeof before === "number" ? seconds - before : null;
}

export function unknownText(estimate: Estimate): string {
  return estimate.unknown
    .map(({ node, field, found, reason }) => `${node}, ${field}: \`${found}\` ${reason}`)
    .join("\n");
}

export function groupGpus(estimate: Estimate): GpuGroup[] {
  const groups: GpuGroup[] = [];
  for (const gpu of estimate.gpus) {
    const last = groups.at(-1);
    const { pool, index } = gpu;
    if (last && last.pool === pool && last.last === index - 1 && isSame(last.gpu, gpu)) {
      last.last = index;
    } else groups.push({ key: `${pool} ${index}`, pool, first: index, last: index, gpu });
  }
  return groups;
}

function isSame(a: GpuEstimate, b: GpuEstimate): boolean {
  return (
    a.peak_bytes === b.peak_bytes &&
    a.usable_bytes === b.usable_bytes &&
    a.peak_stage === b.peak_stage &&
    a.parts.length === b.parts.length
  );
}

/** From what always rests to what comes and goes; others after them. */
const ORDER = ["weights", "optimizer", "gradients", "kv_cache", "activations", "logits"];

function placeOf(part: string): number {
  const place = ORDER.indexOf(part);
  return place < 0 ? ORDER.length : place;
}

/** Parts that are resident in a stage, each kind in its place and of it the largest first. */
export function partsIn(gpu: GpuEstimate, stage: string | null): MemoryPart[] {
  const here = stage ? gpu.parts.filter((part) => part.stages.includes(stage)) : gpu.parts;
  return here
    .filter((part) => part.bytes > 0)
    .toSorted((a, b) => placeOf(a.part) - placeOf(b.part) || b.bytes - a.bytes);
}

export function stagesOf(gpu: GpuEstimate): string[] {
  return [...new Set(gpu.parts.flatMap((part) => part.stages))];
}

export function bytesIn(gpu: GpuEstimate, stage: string): number {
  return partsIn(gpu, stage).reduce((sum, part) => sum + part.bytes, 0);
}

export function partNames(estimate: Estimate): string[] {
  const names = new Set(estimate.gpus.flatMap(({ parts }) => parts.map(({ part }) => part)));
  return [...names].toSorted((a, b) => placeOf(a) - placeOf(b));
}

export function groupName({ pool, first, last }: GpuGroup): string {
  return first === last ? `${pool} ${first}` : `${pool} ${first}–${last}`;
}

/** When a node takes most memory of a GPU or process, over all pools. */
export function heaviestMoment(
  estimate: Estimate,
  node: string,
): { pool: string; stage: string; bytes: number } | null {
  const moments = estimate.gpus.flatMap((gpu) =>
    gpu.peak_bytes === null
      ? []
      : stagesOf(gpu).map((stage) => ({
          pool: gpu.pool,
          stage,
          bytes: partsIn(gpu, stage)
            .filter((part) => part.node === node)
            .reduce((sum, part) => sum + part.bytes, 0),
        })),
  );
  const [most] = moments.filter(({ bytes }) => bytes > 0).toSorted((a, b) => b.bytes - a.bytes);
  return most ?? null;
}
