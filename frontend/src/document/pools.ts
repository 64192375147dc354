import type { Catalog, JsonObject } from "@/api/types";
import { readSchema } from "@/catalog/schema";
import { formatPlural } from "@/lib/format";
import { isObject } from "@/lib/paths";
import type { LoopDocument } from "./types";

export interface Pool {
  name: string;
  /** "4 GPUs", "2 workers"; "" where it does not say. */
  size: string;
}

export function poolsOf(document: LoopDocument): Pool[] {
  const { hardware } = document.rest;
  const pools = isObject(hardware) && isObject(hardware.pools) ? hardware.pools : {};
  return Object.entries(pools).map(([name, pool]) => ({
    name,
    size: isObject(pool) ? sizeOf(pool) : "",
  }));
}

function sizeOf({ gpus, workers }: JsonObject): string {
  if (typeof gpus === "number") return formatPlural(gpus, "GPU");
  return typeof workers === "number" ? formatPlural(workers, "worker") : "";
}

/** The field in which a node of this kind names its pool; null where it runs in none. */
export function poolField(catalog: Catalog, kind: string | undefined): string | null {
  const info = catalog.kinds[kind ?? ""];
  const field = info ? readSchema(info.schema) : null;
  if (field?.shape !== "object") return null;
  return field.properties().find((one) => one.field.choosesFrom === "pools")?.name ?? null;
}

export function poolPaths(catalog: Catalog, kind: string | undefined): [string, string][] {
  const info = catalog.kinds[kind ?? ""];
  const form = info ? readSchema(info.schema) : null;
  if (form?.shape !== "object") return [];
  return form.properties().flatMap(({ name, field }) => {
    const inside = field.shape === "object" ? field.properties() : [];
    const found = inside.find((one) => one.field.choosesFrom === "pools");
    return found ? [[name, found.name] as [string, string]] : [];
  });
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

export interface WrittenPools {
  unit: "gpus" | "workers";
  sizes: PoolSizes;
}

export function poolSizes(document: LoopDocument): WrittenPools | null {
  const hardware = document.rest.hardware;
  const pools = isObject(hardware) && isObject(hardware.pools) ? hardware.pools : {};
  const sizes: Record<string, number> = {};
  let unit: WrittenPools["unit"] = "gpus";
  for (const [name, pool] of Object.entries(pools)) {
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
