/** Values that a field is chosen from: things that exist in the loop, or that the catalog has. Pure. */
import type { Catalog, KindInfo } from "@/api/types";
import { type Choices, type Field, type Property, readSchema } from "@/catalog/schema";
import { isObject } from "@/lib/paths";
import { teachingPorts } from "./canConnect";
import { phaseNames } from "./phases";
import { poolsOf } from "./pools";
import type { LoopDocument, NodeData } from "./types";

export interface Suggestion {
  value: string;
  title?: string;
}

const NONE: readonly Suggestion[] = [];

type Source = (catalog: Catalog, document: LoopDocument, node: NodeData | null) => Suggestion[];

const BY_CHOICES: Partial<Record<Choices, Source>> = {
  nodes: (_, document) => plain(Object.keys(document.nodes)),
  scorers: (catalog, document) =>
    plain(
      Object.entries(document.nodes)
        .filter(([, node]) => givesScores(catalog.kinds[node.kind]))
        .map(([id]) => id),
    ),
  ports: (catalog, document) => plain(teachingPorts(catalog, document).map((port) => port.name)),
  phases: (_, document) => plain(phaseNames(document)),
  probe_metrics: (catalog) =>
    plain(Object.keys(catalog.probe_metrics).map((name) => name.replace("@k", "@8"))),
  pools: (_, document) => plain(poolNames(document)),
  hardware: (catalog) => catalog.hardware.map(({ name, title }) => ({ value: name, title })),
  architectures: (catalog) =>
    catalog.architectures.map(({ name, title }) => ({ value: name, title })),
  task_columns: (catalog, _, node) => plain(taskColumns(catalog, node)),
  metrics: (catalog, document) => plain(reportedMetrics(catalog, document)),
};

function givesScores(kind: KindInfo | undefined): boolean {
  return kind?.outputs.some(({ type }) => type === "Scores") ?? false;
}

export function hasSuggestions({ choosesFrom }: Pick<Field, "choosesFrom">): boolean {
  return choosesFrom !== null && choosesFrom in BY_CHOICES;
}

export function suggestionsOf(
  catalog: Catalog,
  document: LoopDocument,
  { choosesFrom }: Pick<Field, "choosesFrom">,
  node: NodeData | null,
): readonly Suggestion[] {
  return (choosesFrom && BY_CHOICES[choosesFrom]?.(catalog, document, node)) || NONE;
}

function plain(values: readonly string[]): Suggestion[] {
  return values.map((value) => ({ value }));
}

function poolNames(document: LoopDocument): string[] {
  const names = poolsOf(document).map(({ name }) => name);
  return names.length > 0 ? names : ["main"];
}

export function taskColumns(catalog: Catalog, node: NodeData | null): string[] {
  const source = node && isObject(node.source) ? node.source : {};
  const task = catalog.tasks.find(({ name }) => name === source.task);
  return task ? (task.parts[String(source.part)] ?? task.columns) : [];
}

/** "probe.accuracy": what nodes say that they measure. */
function reportedMetrics(catalog: Catalog, document: LoopDocument): string[] {
  return Object.entries(document.nodes).flatMap(([id, node]) =>
    measuring(catalog.kinds[node.kind]).flatMap(({ name }) => {
      const metrics = node[name];
      return Array.isArray(metrics) ? metrics.map((metric) => `${id}.${String(metric)}`) : [];
    }),
  );
}

function measuring(kind: KindInfo | undefined): Property[] {
  const field = kind ? readSchema(kind.schema) : null;
  const properties = field?.shape === "object" ? field.properties() : [];
  return properties.filter((property) => property.field.choosesFrom === "probe_metrics");
}
