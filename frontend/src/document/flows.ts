/** What goes over the edges of a loop when it runs. Pure. */
import type { Catalog } from "@/api/types";
import { portRef, runKey } from "./edges";
import { kindOf } from "./geometry";
import type { LoopDocument } from "./types";

/** An edge of the loop, as a run counts it. */
export interface Flow {
  key: string;
  /** The stage that gives its rows. */
  stage: string;
  reader: string;
  /** The port that it teaches, `node.port`; null: it teaches nothing. */
  teaches: string | null;
}

/** The first stage of a node is the one that its outputs come from. */
export function giverStage(catalog: Catalog, node: string, kind: string | undefined): string {
  return `${node}.${kindOf(catalog, kind)?.stages[0] ?? ""}`;
}

export function flowsOf(catalog: Catalog, document: LoopDocument): Flow[] {
  return document.edges.map((edge) => {
    const [from, to] = [portRef(edge.from), portRef(edge.to)];
    const ports = kindOf(catalog, document.nodes[to.node]?.kind)?.inputs ?? [];
    const isTaught = ports.some((port) => port.name === to.port && port.teaching);
    return {
      key: runKey(edge),
      stage: giverStage(catalog, from.node, document.nodes[from.node]?.kind),
      reader: to.node,
      teaches: isTaught ? edge.to : null,
    };
  });
}
