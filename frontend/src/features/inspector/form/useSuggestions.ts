import { useMemo } from "react";
import type { Catalog } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { useCatalog, useDocument } from "@/document/context";
import { phaseNames } from "@/document/phases";
import { teachingPorts } from "@/document/teaching";
import type { LoopDocument } from "@/document/types";
import { isObject } from "@/lib/paths";

export interface Suggestion {
  value: string;
  /** What to call it, where its value does not say enough. */
  title?: string;
}

const NONE: Suggestion[] = [];

/** By what a field names: things that exist in the loop, or that the catalog has. */
type Source = (catalog: Catalog, document: LoopDocument) => Suggestion[];

const BY_WIDGET: Record<string, Source> = {
  node: (_, document) => plain(Object.keys(document.nodes)),
  port: (catalog, document) => plain(teachingPorts(catalog, document).map((port) => port.name)),
  phase: (_, document) => plain(phaseNames(document)),
  metrics: (catalog) =>
    plain(Object.keys(catalog.probe_metrics ?? {}).map((name) => name.replace("@k", "@8"))),
};

/** A choice whose options are no part of the schema is told by the field's own name. */
const BY_NAME: Record<string, Source> = {
  pool: (_, document) => plain(poolNames(document)),
  preset: (catalog) => (catalog.hardware ?? []).map(({ name, title }) => ({ value: name, title })),
  architecture: (catalog) =>
    (catalog.architectures ?? []).map(({ name, title }) => ({ value: name, title })),
  metric: (_, document) => plain(reportedMetrics(document)),
  best: (_, document) => plain(reportedMetrics(document)),
};

export function useSuggestions(field: Pick<Field, "widget" | "name">): Suggestion[] {
  const catalog = useCatalog();
  const source = BY_WIDGET[field.widget ?? ""] ?? BY_NAME[field.name];
  const document = useDocument((state) => (source ? state.document : null));
  return useMemo(
    () => (source && document ? source(catalog, document) : NONE),
    [catalog, document, source],
  );
}

function plain(values: readonly string[]): Suggestion[] {
  return values.map((value) => ({ value }));
}

function poolNames(document: LoopDocument): string[] {
  const { hardware } = document.rest;
  const names = isObject(hardware) && isObject(hardware.pools) ? Object.keys(hardware.pools) : [];
  return names.length > 0 ? names : ["main"];
}

/** "probe.accuracy": what nodes say that they measure. */
function reportedMetrics(document: LoopDocument): string[] {
  return Object.entries(document.nodes).flatMap(([id, node]) =>
    Array.isArray(node.metrics) ? node.metrics.map((metric) => `${id}.${String(metric)}`) : [],
  );
}
