/** Names that a template of a node may mention: columns of the rows that reach it. Pure. */
import type { Catalog } from "@/api/types";
import { isObject } from "@/lib/paths";
import { outputPort } from "./canConnect";
import { datasetsOf } from "./datasets";
import { portRef } from "./edges";
import { taskColumns } from "./suggestions";
import type { LoopDocument } from "./types";

const TEXT = "completion";

/** Columns of files by their path, as far as they were read on this page. */
const columnsOfFiles = new Map<string, readonly string[]>();

export function rememberColumns(path: string, columns: readonly string[]): void {
  columnsOfFiles.set(path, columns);
}

export function columnsAt(catalog: Catalog, document: LoopDocument, node: string): string[] {
  const own = datasetsOf(catalog, document, node).flatMap((id) =>
    columnsFrom(catalog, document, id),
  );
  const into = document.edges.filter(({ to }) => portRef(to).node === node);
  const types = new Set(into.map(({ from }) => outputPort(catalog, document, portRef(from))?.type));
  const written = types.has("Rollouts") ? [TEXT] : [];
  const sides = types.has("Pairs") ? [`a.${TEXT}`, `b.${TEXT}`] : [];
  return [...new Set([...own, ...written, ...sides])];
}

function columnsFrom(catalog: Catalog, document: LoopDocument, id: string): string[] {
  const data = document.nodes[id];
  if (!data) return [];
  const { source, columns } = data;
  const mapped = isObject(columns) ? Object.keys(columns) : [];
  const gone = new Set(isObject(columns) ? Object.values(columns).map(String) : []);
  const read = isObject(source) ? readFrom(catalog, data, source) : [];
  return [...mapped, ...read.filter((name) => !gone.has(name) || mapped.includes(name))];
}

function readFrom(
  catalog: Catalog,
  data: LoopDocument["nodes"][string],
  source: Record<string, unknown>,
): readonly string[] {
  if (Array.isArray(source.rows))
    return source.rows.flatMap((row) => (isObject(row) ? Object.keys(row) : []));
  if (typeof source.path === "string") return columnsOfFiles.get(source.path) ?? [];
  return taskColumns(catalog, data);
}
