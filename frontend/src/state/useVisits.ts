import type { Laid } from "@/catalog/following";
import type { Visits } from "@/catalog/variants";
import { remember } from "@/lib/remember";
import { useOpenLoop } from "./document/context";
import type { DocumentStore } from "./document/store";

const memoryOf = remember((_: DocumentStore) => new Map<string, Visits>());
const laidIn = remember((_: DocumentStore) => new Map<string, Laid>());

/** What a union at a place was before it became what it is; kept for as long as the loop is open. */
export function useVisits(): (place: string) => Visits {
  const { store } = useOpenLoop();
  return (place) => {
    const memory = memoryOf(store);
    const visits: Visits = memory.get(place) ?? new Map();
    memory.set(place, visits);
    return visits;
  };
}

/** What was taken out of a node because it no longer belonged; kept for as long as the loop is open. */
export function useLaid(): (node: string) => Laid {
  const { store } = useOpenLoop();
  return (node) => {
    const memory = laidIn(store);
    const laid: Laid = memory.get(node) ?? new Map();
    memory.set(node, laid);
    return laid;
  };
}
