/** What an edge says about its options, in a few words. Pure. */
import type { Edge } from "./types";

export function edgeText(edge: Edge): string {
  const words: string[] = [];
  for (const [name, value] of Object.entries(edge)) {
    if (value === undefined || value === null || name === "from" || name === "to") continue;
    if (name === "id") words.unshift(String(value));
    else if (name === "weight") words.push(`× ${String(value)}`);
    else if (name === "rounds") words.push(`${String(value)} rounds`);
    else words.push(String(value));
  }
  return words.join(" · ");
}
