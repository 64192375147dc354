/**
 * A learner has a colour of its own from its creation until it is deleted: a number in the layout of the loop,
 * which the compiler does not read. Pure.
 */
import { current, isDraft } from "immer";
import type { Catalog } from "@/api/types";
import { IDENTITIES } from "@/lib/colors";
import { deepEqual, readPath } from "@/lib/paths";
import { edgeFacts } from "./edges";
import type { LoopDocument } from "./types";

type Numbers = Readonly<Record<string, number>>;

export function isLearner(catalog: Catalog, document: LoopDocument, id: string): boolean {
  const node = document.nodes[id];
  const kind = catalog.kinds[node?.kind ?? ""];
  if (!kind?.learning) return false;
  const own = readPath(node, [kind.learning.algorithm]);
  if (own !== undefined && own !== null) return true;
  const { inputs } = edgeFacts(document.edges);
  return kind.inputs.some(
    (port) => port.teaching && !port.is_optional && inputs.has(`${id}.${port.name}`),
  );
}

/** The number of every node that has one: those that the loop keeps, and the next free ones of other learners. */
export function identities(catalog: Catalog, document: LoopDocument): Numbers {
  const kept = document.identities ?? NONE;
  const found: Record<string, number> = {};
  const uses = Array.from({ length: IDENTITIES }, () => 0);
  const give = (id: string, number: number) => {
    found[id] = number;
    uses[number - 1] = (uses[number - 1] ?? 0) + 1;
  };
  for (const [id, number] of Object.entries(kept)) if (id in document.nodes) give(id, number);
  for (const id of Object.keys(document.nodes)) {
    if (found[id] !== undefined || !isLearner(catalog, document, id)) continue;
    give(id, uses.indexOf(Math.min(...uses)) + 1);
  }
  return deepEqual(kept, found) ? kept : found;
}

const NONE: Numbers = {};

/** The same loop, each learner with its number; nodes keep those that they had before. */
export function withIdentities(
  catalog: Catalog,
  document: LoopDocument,
  before: Numbers = NONE,
): LoopDocument {
  const kept = { ...before, ...document.identities };
  const found = identities(catalog, { ...document, identities: kept });
  return deepEqual(document.identities ?? NONE, found)
    ? document
    : { ...document, identities: { ...found } };
}

export function keepIdentities(catalog: Catalog): (draft: LoopDocument) => void {
  return (draft) => {
    const document = isDraft(draft) ? current(draft) : draft;
    const found = identities(catalog, document);
    if (found !== (document.identities ?? NONE)) draft.identities = { ...found };
  };
}
