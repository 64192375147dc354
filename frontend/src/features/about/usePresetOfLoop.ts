import { useSearch } from "wouter";
import { useDocument } from "@/document/context";
import { presetOf } from "@/session/presetAddress";
import { usePresetNames } from "@/session/usePresetNames";

/**
 * The preset that the open loop is or came from: its address says so, or its name. Null for a loop of one's own,
 * and while that is not known.
 */
export function usePresetOfLoop(): { preset: string | null; isKnown: boolean } {
  const named = presetOf(useSearch());
  const name = useDocument((state) => state.document.name);
  const { names, isPending } = usePresetNames();
  const wanted = named ?? name;
  return { preset: names.includes(wanted) ? wanted : null, isKnown: !isPending };
}
