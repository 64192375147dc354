/**
 * Which way every edge of a loop goes: data from left to right, learning below all boxes, measuring above them, and
 * short ties between a node and one that follows only it (its reference, its critic). Pure.
 */

import { isDraft } from "immer";
import type { Catalog, Json } from "@/api/types";
import { type Field, readSchema } from "@/catalog/schema";
import { inputPort } from "@/document/canConnect";
import { edgeKeys, portRef } from "@/document/edges";
import type { Edge, LoopDocument, NodeData, PortRef } from "@/document/types";
import { remember } from "@/lib/remember";

export type EdgeKind = "data" | "measure" | "learning" | "tie";

export function isSided(kind: EdgeKind): boolean {
  return kind === "data" || kind === "measure";
}

export interface KnownEdge {
  key: string;
  edge: Edge;
  from: PortRef;
  to: PortRef;
  kind: EdgeKind;
}

export interface EdgeKinds {
  /** As the document lists them. */
  edges: readonly KnownEdge[];
  /** By a node that follows only one other (a reference, a critic): that other node. */
  leaderOf: ReadonlyMap<string, string>;
  left: ReadonlySet<string>;
  right: ReadonlySet<string>;
}

interface Known {
  kinds: string;
  catalog: Catalog;
  byEdge: EdgeKinds;
}

const known = new WeakMap<readonly Edge[], Known>();

/** Worked out once for each list of edges and kinds of nodes. */
export function edgeKinds(catalog: Catalog, document: LoopDocument): EdgeKinds {
  const { edges, nodes } = document;
  if (isDraft(edges)) return readKinds(catalog, document);
  const kinds = kindsOf(nodes);
  const last = known.get(edges);
  if (last?.kinds === kinds && last.catalog === catalog) return last.byEdge;
  const byEdge = readKinds(catalog, document);
  known.set(edges, { kinds, catalog, byEdge });
  return byEdge;
}

const kindsOf = remember((nodes: Readonly<Record<string, NodeData>>) =>
  Object.entries(nodes)
    .map(([id, { kind }]) => `${id}:${kind}`)
    .join(","),
);

function readKinds(catalog: Catalog, document: LoopDocument): EdgeKinds {
  const keys = edgeKeys(document.edges);
  const leaderOf = findLeaders(catalog, document);
  const edges = document.edges.map((edge, index): KnownEdge => {
    const [from, to] = [portRef(edge.from), portRef(edge.to)];
    const kind = kindOfEdge(catalog, document, from, to, leaderOf);
    return { key: keys[index] ?? "", edge, from, to, kind };
  });
  const sided = edges.filter(({ kind }) => isSided(kind)).map(({ edge }) => edge);
  return {
    edges,
    leaderOf,
    left: new Set(sided.map(({ to }) => to)),
    right: new Set(sided.map(({ from }) => from)),
  };
}

function kindOfEdge(
  catalog: Catalog,
  document: LoopDocument,
  from: PortRef,
  to: PortRef,
  leaderOf: ReadonlyMap<string, string>,
): EdgeKind {
  if (leaderOf.get(from.node) === to.node || leaderOf.get(to.node) === from.node) return "tie";
  if (isLearnedFrom(catalog, document, to)) return "learning";
  const kind = catalog.kinds[document.nodes[to.node]?.kind ?? ""];
  return kind?.outputs.length === 0 ? "measure" : "data";
}

/** Whether what arrives at an input is learned from, or used where a node learns. */
export function isLearnedFrom(catalog: Catalog, document: LoopDocument, to: PortRef): boolean {
  return inputPort(catalog, document, to)?.phase === "learn";
}

/** A node that is joined with one other only, reads of it, and gives back what it learns with, not from. */
function findLeaders(catalog: Catalog, document: LoopDocument): Map<string, string> {
  const partners = new Map<string, Set<string>>();
  const add = (node: string, other: string) => {
    const set = partners.get(node) ?? new Set();
    set.add(other);
    partners.set(node, set);
  };
  for (const edge of document.edges) {
    const [from, to] = [portRef(edge.from).node, portRef(edge.to).node];
    add(from, to);
    add(to, from);
  }
  const leaderOf = new Map<string, string>();
  const few = (node: string) =>
    document.edges.filter(
      ({ from, to }) => portRef(from).node === node || portRef(to).node === node,
    ).length;
  for (const [node, others] of [...partners].toSorted(([a], [b]) => few(a) - few(b))) {
    const [leader] = others;
    if (others.size !== 1 || leader === undefined || leader === node) continue;
    const given = document.edges
      .filter((edge) => portRef(edge.from).node === node)
      .map((edge) => inputPort(catalog, document, portRef(edge.to)));
    const gives =
      given.length > 0 && given.every((port) => port?.phase === "learn" && !port.teaching);
    const reads = document.edges.some((edge) => portRef(edge.to).node === node);
    if (!gives || !reads || (partners.get(leader)?.size ?? 0) < 2 || !(node in document.nodes)) {
      continue;
    }
    if ([...leaderOf.values()].includes(leader)) continue;
    leaderOf.set(node, leader);
  }
  return leaderOf;
}

/** What an edge says about its options, in a few words: those that the catalog has words for. Pure. */
export interface EdgeOption {
  name: string;
  field: Field;
  value: Json;
  text: string;
}

/** @param offersNumbers those that are not set as well, with what holds then */
export function edgeOptions(
  { schema }: Pick<Catalog, "schema">,
  edge: Edge,
  offersNumbers = false,
): EdgeOption[] {
  const form = readSchema(schema.edge);
  const options = form.shape === "object" ? form.properties() : [];
  return options.flatMap(({ name, field }) => {
    const value = edge[name] ?? (offersNumbers && field.shape === "number" ? field.fallback : null);
    return field.short === null || value === undefined || value === null
      ? []
      : [{ name, field, value, text: field.short.replace("{}", () => String(value)) }];
  });
}

export function edgeText(catalog: Pick<Catalog, "schema">, edge: Edge): string {
  return edgeOptions(catalog, edge)
    .map(({ text }) => text)
    .join(" · ");
}

export function edgeLabel(catalog: Catalog, edge: Edge, kind: EdgeKind): string {
  return [learningName(edge, kind), edgeText(catalog, edge)].filter(Boolean).join(" · ");
}

export function learningName(edge: Edge, kind: EdgeKind): string {
  if (kind !== "learning" || typeof edge.id === "string") return "";
  return portRef(edge.to).port.replaceAll("_", " ");
}

export function bundleTitle(keys: readonly string[]): string {
  return [`${keys.length} edges`, ...keys].join("\n");
}
