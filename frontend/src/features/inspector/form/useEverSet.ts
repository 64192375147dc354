import { useRef } from "react";
import type { JsonObject } from "@/api/types";

/**
 * Names of the fields that had a value while the form was open at this level. An emptied one is still there
 * to be typed in.
 */
export function useEverSet(value: JsonObject, level: string): ReadonlySet<string> {
  const seen = useRef({ level, names: new Set<string>() });
  if (seen.current.level !== level) seen.current = { level, names: new Set() };
  for (const [name, one] of Object.entries(value)) {
    if (one !== undefined) seen.current.names.add(name);
  }
  return seen.current.names;
}
