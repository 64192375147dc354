import { useSearch } from "wouter";
import { useDocument } from "@/document/context";
import { presetOf } from "@/session/presetAddress";
import { usePresetNames } from "@/session/usePresetNames";

/** The preset that the open loop is or came from: its address says so, or its name. Null for a loop of one's own. */
export function usePresetOfLoop(): string | null {
  const named = presetOf(useSearch());
  const name = useDocument((state) => state.document.name);
  const names = usePresetNames();
  const wanted = named ?? name;
  return names.includes(wanted) ? wanted : null;
}
