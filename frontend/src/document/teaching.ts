/** Teaching ports that have an edge: what a phase can learn. Pure. */
import type { Catalog } from "@/api/types";
import { inputPort } from "./canConnect";
import { portRef } from "./edges";
import type { LoopDocument } from "./types";

export interface TeachingPort {
  name: string;
  node: string;
  port: string;
  type: string;
}

export function teachingPorts(catalog: Catalog, document: LoopDocument): TeachingPort[] {
  const found = new Map<string, TeachingPort>();
  for (const edge of document.edges) {
    const ref = portRef(edge.to);
    const port = inputPort(catalog, document, ref);
    if (port?.teaching) found.set(edge.to, { name: edge.to, ...ref, type: port.type });
  }
  return [...found.values()];
}
