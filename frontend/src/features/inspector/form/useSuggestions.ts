import { useMemo } from "react";
import type { Catalog, KindInfo } from "@/api/types";
import { type Choices, type Field, type Property, readSchema } from "@/catalog/schema";
import { useCatalog, useDocument } from "@/document/context";
import { phaseNames } from "@/document/phases";
import { poolsOf } from "@/document/pools";
import { teachingPorts } from "@/document/teaching";
import type { LoopDocument, NodeData } from "@/document/types";
import { isObject } from "@/lib/paths";
import { useForm } from "./FormContext";

export interface Suggestion {
  value: string;
  /** What to call it, where its value does not say enough. */
  title?: string;
}

const NONE: Suggestion[] = [];

/** By what a field names: things that exist in the loop, or that the catalog has. */
type Source = (catalog: Catalog, document: LoopDocument, node: NodeData | null) => Suggestion[];

/** By what the catalog says that a field's value is chosen from. */
const BY_CHOICES: Partial<Record<Choices, Source>> = {
  nodes: (_, document) => plain(Object.keys(document.nodes)),
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

export function useSuggestions({ choosesFrom }: Pick<Field, "choosesFrom">): Suggestion[] {
  const catalog = useCatalog();
  const source = choosesFrom ? BY_CHOICES[choosesFrom] : undefined;
  const document = useDocument((state) => (source ? state.document : null));
  const { scope } = useForm();
  const id = scope[0] === "nodes" ? String(scope[1]) : null;
  return useMemo(
    () => (source && document ? source(catalog, document, document.nodes[id ?? ""] ?? null) : NONE),
    [catalog, document, source, id],
  );
}

function plain(values: readonly string[]): Suggestion[] {
  return values.map((value) => ({ value }));
}

function poolNames(document: LoopDocument): string[] {
  const names = poolsOf(document).map(({ name }) => name);
  return names.length > 0 ? names : ["main"];
}

/** Columns of the built-in task that a node takes its rows from, or of that part of it. */
function taskColumns(catalog: Catalog, node: NodeData | null): string[] {
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

/** The fields of a kind that list what a probe reports. */
function measuring(kind: KindInfo | undefined): Property[] {
  const field = kind ? readSchema(kind.schema) : null;
  const properties = field?.shape === "object" ? field.properties() : [];
  return properties.filter((property) => property.field.choosesFrom === "probe_metrics");
}
