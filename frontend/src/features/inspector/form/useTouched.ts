import { useRef } from "react";
import type { JsonObject } from "@/api/types";

/**
 * Names of the fields whose value changed while the form was open at this level. An emptied one is still there
 * to be typed in, and one that was set elsewhere a moment ago is seen.
 */
export function useTouched(value: JsonObject, level: string): ReadonlySet<string> {
  const seen = useRef({ level, began: value, names: new Set<string>() });
  if (seen.current.level !== level) seen.current = { level, began: value, names: new Set() };
  const { began, names } = seen.current;
  for (const name of new Set([...Object.keys(began), ...Object.keys(value)])) {
    if (began[name] !== value[name]) names.add(name);
  }
  return names;
}
