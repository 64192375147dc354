import type { Catalog } from "@/api/types";
import { sum } from "@/lib/statistics";
import { edgeKeys, portRef, runKey } from "./edges";
import type { LoopDocument, PortRef } from "./types";

/** A port at which scores of a node's own texts come together and teach it. */
export interface Payee extends PortRef {
  name: string;
}

export interface PayingEdge {
  key: string;
  name: string;
  node: string;
  weight: number;
}

export function payees(catalog: Catalog, document: LoopDocument): Payee[] {
  const all = Object.entries(document.nodes).flatMap(([node, { kind }]) =>
    (catalog.kinds[kind]?.inputs ?? [])
      .filter((port) => port.teaching && port.of !== null)
      .map((port) => ({ node, port: port.name, name: `${node}.${port.name}` })),
  );
  const paid = new Set(document.edges.map((edge) => edge.to));
  return [
    ...all.filter(({ name }) => paid.has(name)),
    ...all.filter(({ name }) => !paid.has(name)),
  ];
}

export function payingEdges(document: LoopDocument, payee: string): PayingEdge[] {
  const keys = edgeKeys(document.edges);
  const all = document.edges.map((edge, index) => ({
    to: edge.to,
    key: keys[index] ?? "",
    name: runKey(edge),
    node: portRef(edge.from).node,
    weight: typeof edge.weight === "number" ? edge.weight : 1,
  }));
  return all.filter(({ to }) => to === payee);
}

/**
 * One weight changed. Where the total is kept, the sources that are not locked share what is left in the
 * proportions that they have, or alike where they have none.
 */
export function weighed(
  edges: readonly PayingEdge[],
  key: string,
  weight: number,
  keeps: { total: number; locked: ReadonlySet<string> } | null,
): Record<string, number> {
  if (keeps === null) return { [key]: weight };
  const others = edges.filter((edge) => edge.key !== key);
  const free = others.filter((edge) => !keeps.locked.has(edge.key));
  const fixed = weightOf(others.filter((edge) => keeps.locked.has(edge.key)));
  const own = free.length === 0 ? keeps.total - fixed : weight;
  const left = keeps.total - fixed - own;
  const present = weightOf(free);
  const share = (edge: PayingEdge) =>
    present === 0 ? left / free.length : (edge.weight / present) * left;
  return {
    [key]: rounded(own),
    ...Object.fromEntries(free.map((edge) => [edge.key, rounded(share(edge))])),
  };
}

export function weightOf(edges: readonly PayingEdge[]): number {
  return sum(edges.map(({ weight }) => weight));
}

export function rounded(weight: number): number {
  return Math.round(weight * 1000) / 1000;
}

/** What a row is paid: the scores with their weights, put together as the learner's credit says. */
export function totalOf(
  scores: readonly (number | null)[],
  weights: readonly number[],
  missing: string,
): number | null {
  const live = scores
    .map((score, index) => ({ score, weight: weights[index] ?? 0 }))
    .filter(({ weight }) => weight !== 0);
  const given = live.filter(({ score }) => score !== null);
  if (given.length === 0 || (missing === "skip_row" && given.length < live.length)) return null;
  const total = sum(given.map(({ score, weight }) => weight * (score ?? 0)));
  if (missing !== "mean_of_available") return total;
  return total / sum(given.map(({ weight }) => Math.abs(weight)));
}
