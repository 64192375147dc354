/**
 * Whether two ports may be joined, and if not, why. Types come from the catalog.
 * This is help while dragging; the server alone decides what is valid.
 */
import type { Catalog, InputPort, OutputPort } from "@/api/types";
import { portText } from "./edges";
import type { LoopDocument, PortRef } from "./types";

export type Connectable = { ok: true } | { ok: false; reason: string };

const YES: Connectable = { ok: true };

function no(reason: string): Connectable {
  return { ok: false, reason };
}

export function outputPort(
  catalog: Catalog,
  document: LoopDocument,
  ref: PortRef,
): OutputPort | null {
  const kind = catalog.kinds[document.nodes[ref.node]?.kind ?? ""];
  return kind?.outputs.find((port) => port.name === ref.port) ?? null;
}

export function inputPort(
  catalog: Catalog,
  document: LoopDocument,
  ref: PortRef,
): InputPort | null {
  const kind = catalog.kinds[document.nodes[ref.node]?.kind ?? ""];
  return kind?.inputs.find((port) => port.name === ref.port) ?? null;
}

export function accepts(catalog: Catalog, target: string, source: string): boolean {
  return target === source || (catalog.port_types[target]?.accepts.includes(source) ?? false);
}

export function canConnect(
  catalog: Catalog,
  document: LoopDocument,
  source: PortRef,
  target: PortRef,
  ignoredEdge: string | null = null,
): Connectable {
  const output = outputPort(catalog, document, source);
  const input = inputPort(catalog, document, target);
  if (!output || !input) return no("Connect an output to an input.");
  if (!accepts(catalog, input.type, output.type)) {
    return no(`${input.name} takes ${input.type}, ${source.port} gives ${output.type}.`);
  }
  const from = portText(source);
  const to = portText(target);
  const others = document.edges.filter(
    (edge) => edge.to === to && `${edge.from}->${to}` !== ignoredEdge,
  );
  if (others.some((edge) => edge.from === from)) return no("These two are already connected.");
  if (input.max !== null && others.length >= input.max) {
    return no(
      input.max === 1
        ? `${input.name} takes one connection and already has it.`
        : `${input.name} takes at most ${input.max} connections.`,
    );
  }
  return YES;
}

/** What a node works on comes before what teaches it, and the same type before one that is taken too. */
export function preferredInput(
  inputs: readonly InputPort[],
  type: string | undefined,
): InputPort | undefined {
  const works = inputs.filter((port) => !port.teaching);
  return works.find((port) => port.type === type) ?? works[0] ?? inputs[0];
}
