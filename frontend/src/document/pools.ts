import type { Catalog, JsonObject, JsonSchema } from "@/api/types";
import { type Field, readSchema } from "@/catalog/schema";
import { formatPlural } from "@/lib/format";
import { isObject } from "@/lib/paths";
import { remember } from "@/lib/remember";
import type { LoopDocument } from "./types";

export interface Pool {
  name: string;
  /** "4 GPUs", "2 workers"; "" where it does not say. */
  size: string;
}

function poolsIn(document: LoopDocument): JsonObject {
  const { hardware } = document.rest;
  return isObject(hardware) && isObject(hardware.pools) ? hardware.pools : {};
}

export function poolsOf(document: LoopDocument): Pool[] {
  return Object.entries(poolsIn(document)).map(([name, pool]) => ({
    name,
    size: isObject(pool) ? sizeOf(pool) : "",
  }));
}

function sizeOf({ gpus, workers }: JsonObject): string {
  if (typeof gpus === "number") return formatPlural(gpus, "GPU");
  return typeof workers === "number" ? formatPlural(workers, "worker") : "";
}

/** The fields in which a node of this kind names pools: its own, and those of its parts. */
export function poolPaths(catalog: Catalog, kind: string | undefined): readonly string[][] {
  const info = catalog.kinds[kind ?? ""];
  return info ? pathsOf(info.schema) : [];
}

const pathsOf = remember((schema: JsonSchema) => pathsIn(readSchema(schema), 2));

function pathsIn(field: Field, depth: number): string[][] {
  if (field.shape !== "object" || depth === 0) return [];
  return field.properties().flatMap(({ name, field: own }) => {
    if (own.choosesFrom === "pools") return [[name]];
    return pathsIn(own, depth - 1).map((path) => [name, ...path]);
  });
}

/** The field in which a node of this kind names its pool; null where it runs in none. */
export function poolField(catalog: Catalog, kind: string | undefined): string | null {
  return poolPaths(catalog, kind).find((path) => path.length === 1)?.[0] ?? null;
}

export function poolOf(catalog: Catalog, document: LoopDocument, node: string): string | null {
  const data = document.nodes[node];
  const field = poolField(catalog, data?.kind);
  const named = field ? data?.[field] : null;
  return typeof named === "string" ? named : null;
}

export function placeable(
  catalog: Catalog,
  document: LoopDocument,
  nodes: readonly string[],
): string[] {
  return nodes.filter((id) => poolField(catalog, document.nodes[id]?.kind) !== null);
}

export type PoolSizes = Readonly<Record<string, number>>;

interface WrittenPools {
  unit: "gpus" | "workers";
  sizes: PoolSizes;
}

export function poolSizes(document: LoopDocument): WrittenPools | null {
  const sizes: Record<string, number> = {};
  let unit: WrittenPools["unit"] = "gpus";
  for (const [name, pool] of Object.entries(poolsIn(document))) {
    if (!isObject(pool)) continue;
    if (typeof pool.workers === "number") unit = "workers";
    const size = pool.gpus ?? pool.workers;
    if (typeof size === "number") sizes[name] = size;
  }
  return Object.keys(sizes).length > 0 ? { unit, sizes } : null;
}

export function hardwareName(document: LoopDocument): string {
  const { hardware } = document.rest;
  if (!isObject(hardware)) return "cpu";
  if (typeof hardware.preset === "string") return hardware.preset;
  return typeof hardware.gpu === "string" ? hardware.gpu : "cpu";
}

export function isOnCpu(document: LoopDocument): boolean {
  return hardwareName(document) === "cpu";
}
