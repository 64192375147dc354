/** A new source of scores, connected on both sides: one undoable step. */
import type { Catalog } from "@/api/types";
import type { ScorerChoice } from "@/catalog/scorers";
import { accepts, canConnect, inputPort } from "@/document/canConnect";
import { portText } from "@/document/edges";
import { freeName } from "@/document/names";
import type { Payee } from "@/document/rewards";
import type { Edge, LoopDocument } from "@/document/types";
import { freePlace } from "@/graph/freePlace";
import { addNode } from "@/state/commands/nodes";
import type { DocumentStore } from "@/state/document/store";

export function scoresPort(catalog: Catalog, document: LoopDocument, payee: Payee): string {
  return inputPort(catalog, document, payee)?.type ?? "";
}

/** Nodes of the loop that give what the learner takes and do not pay it yet, and from which port. */
export function unconnected(
  catalog: Catalog,
  document: LoopDocument,
  payee: Payee,
): { node: string; from: string }[] {
  return Object.entries(document.nodes).flatMap(([node, { kind }]) => {
    if (node === payee.node) return [];
    const port = catalog.kinds[kind]?.outputs.find(
      ({ name }) => canConnect(catalog, document, { node, port: name }, payee).ok,
    );
    return port ? [{ node, from: portText({ node, port: port.name }) }] : [];
  });
}

export function newSource(
  catalog: Catalog,
  store: DocumentStore,
  payee: Payee,
  choice: ScorerChoice,
): string {
  const { document } = store.getState();
  const id = freeName(choice.name, new Set(Object.keys(document.nodes)));
  const [x, y] = document.layout[payee.node] ?? [0, 0];
  const place = freePlace(catalog, document, choice.kind, { x: x + 320, y: y + 160 });
  store.dispatch(
    addNode,
    {
      id,
      data: { ...choice.data, kind: choice.kind.kind },
      position: [place.x, place.y],
      edges: edgesOf(catalog, document, payee, choice, id),
    },
    { label: `Add source ${id}` },
  );
  return id;
}

function edgesOf(
  catalog: Catalog,
  document: LoopDocument,
  payee: Payee,
  { kind }: ScorerChoice,
  id: string,
): Edge[] {
  const learner = catalog.kinds[document.nodes[payee.node]?.kind ?? ""];
  const read = kind.inputs
    .filter((input) => !input.teaching)
    .flatMap((input) => {
      const output = learner?.outputs.find(({ type }) => type === input.type);
      return output ? [{ from: `${payee.node}.${output.name}`, to: `${id}.${input.name}` }] : [];
    });
  const paid = scoresPort(catalog, document, payee);
  const gives = kind.outputs.find(({ type }) => accepts(catalog, paid, type));
  const pays = gives ? [{ from: `${id}.${gives.name}`, to: payee.name }] : [];
  return [...read.slice(0, 1), ...pays];
}
