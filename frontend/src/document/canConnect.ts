/**
 * Whether two ports may be joined, and if not, why. Types come from the catalog.
 * This is help while dragging; the server alone decides what is valid.
 */
import type { Catalog, InputPort, KindInfo } from "@/api/types";
import { readPath } from "@/lib/paths";
import { portRef, portText } from "./edges";
import type { Edge, LoopDocument, PortRef } from "./types";

type Connectable = { ok: true } | { ok: false; reason: string };

function no(reason: string): Connectable {
  return { ok: false, reason };
}

function infoOf(catalog: Catalog, document: LoopDocument, node: string): KindInfo | undefined {
  return catalog.kinds[document.nodes[node]?.kind ?? ""];
}

export function outputPort(catalog: Catalog, document: LoopDocument, ref: PortRef) {
  const outputs = infoOf(catalog, document, ref.node)?.outputs;
  return outputs?.find((port) => port.name === ref.port) ?? null;
}

export function inputPort(catalog: Catalog, document: LoopDocument, ref: PortRef) {
  const inputs = infoOf(catalog, document, ref.node)?.inputs;
  const port = inputs?.find((one) => one.name === ref.port) ?? null;
  return port && asItTeaches(catalog, document.nodes[ref.node], port);
}

/** The port as it is at a node: one that also serves other algorithms teaches where there is one for it. */
export function asItTeaches(
  catalog: Catalog,
  node: LoopDocument["nodes"][string] | undefined,
  port: InputPort,
): InputPort {
  if (!port.teaching || !port.is_optional) return port;
  const path = catalog.kinds[node?.kind ?? ""]?.learning?.algorithm;
  const own = node && path ? readPath(node, [path]) : null;
  if (!own || typeof own !== "object") return { ...port, teaching: false };
  const name = readPath(own, ["name"]);
  const isTaught =
    name === undefined
      ? Boolean(readPath(own, [port.name]))
      : (catalog.algorithms[port.name] ?? []).some((algorithm) => algorithm.name === name);
  return isTaught ? port : { ...port, teaching: false };
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
  return { ok: true };
}

/** What a node works on comes before what teaches it, and the same type before one that is taken too. */
export function preferredInput(
  inputs: readonly InputPort[],
  type: string | undefined,
): InputPort | undefined {
  const works = inputs.filter((port) => !port.teaching || port.is_optional);
  return works.find((port) => port.type === type) ?? works[0] ?? inputs[0];
}

const NEW = "";

/** The port of a new node that an edge from `from` would go to, or null where it cannot be joined. */
export function fittingPort(
  catalog: Catalog,
  document: LoopDocument,
  from: PortRef & { isOutput: boolean },
  kind: KindInfo,
): string | null {
  const nodes = { ...document.nodes, [NEW]: { kind: kind.kind } };
  const canJoin = (port: string) => {
    const own = { node: NEW, port };
    const [source, target] = from.isOutput ? [from, own] : [own, from];
    return canConnect(catalog, { ...document, nodes }, source, target).ok;
  };
  if (!from.isOutput) return kind.outputs.find((port) => canJoin(port.name))?.name ?? null;
  const type = outputPort(catalog, document, from)?.type;
  const fits = kind.inputs.filter((port) => canJoin(port.name));
  return preferredInput(fits, type)?.name ?? null;
}

export interface Splice {
  input: string;
  output: string;
}

/** Null where the kind does not take what the edge carries, or gives nothing that its end takes. */
export function spliceOf(
  catalog: Catalog,
  document: LoopDocument,
  edge: Edge,
  kind: string | undefined,
): Splice | null {
  const info = catalog.kinds[kind ?? ""];
  const source = outputPort(catalog, document, portRef(edge.from));
  const target = inputPort(catalog, document, portRef(edge.to));
  if (!info || !source || !target) return null;
  const inputs = info.inputs.filter((port) => accepts(catalog, port.type, source.type));
  const outputs = info.outputs.filter((port) => accepts(catalog, target.type, port.type));
  const input = preferredInput(inputs, source.type);
  const output = outputs.find((port) => port.type === target.type) ?? outputs[0];
  return input && output ? { input: input.name, output: output.name } : null;
}

export function isUnconnected(document: LoopDocument, node: string): boolean {
  return document.edges.every(
    (edge) => portRef(edge.from).node !== node && portRef(edge.to).node !== node,
  );
}

export interface TeachingPort extends PortRef {
  name: string;
  type: string;
}

export function teachingPorts(catalog: Catalog, document: LoopDocument): TeachingPort[] {
  const found = new Map<string, TeachingPort>();
  for (const edge of document.edges) {
    const ref = portRef(edge.to);
    const port = inputPort(catalog, document, ref);
    if (port?.teaching) found.set(edge.to, { name: edge.to, ...ref, type: port.type });
  }
  const nodes = Object.keys(document.nodes);
  return [...found.values()].toSorted((a, b) => nodes.indexOf(a.node) - nodes.indexOf(b.node));
}
