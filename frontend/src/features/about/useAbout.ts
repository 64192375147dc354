import { useQuery } from "@tanstack/react-query";
import { useSearch } from "wouter";
import { fetchPresetNames } from "@/api/routes";
import { useDocument } from "@/state/document/context";
import { setPreferences, usePreferences } from "@/state/preferences";
import { clearSelection } from "@/state/selection";
import { presetOf } from "@/state/unsaved";

export function useAbout() {
  const { preset, isKnown } = usePresetOfLoop();
  const closed = usePreferences((state) => state.closedAbouts);
  return {
    preset,
    isKnown,
    isOpen: preset !== null && !closed.includes(preset),
    close: () => {
      if (preset !== null) setPreferences({ closedAbouts: [...closed, preset] });
    },
    open: () => {
      if (preset === null) return;
      clearSelection();
      setPreferences({
        closedAbouts: closed.filter((name) => name !== preset),
        isInspectorOpen: true,
      });
    },
  };
}

/**
 * The preset that the open loop is or came from: its address says so, or its name. Null for a loop of one's own,
 * and while that is not known.
 */
function usePresetOfLoop(): { preset: string | null; isKnown: boolean } {
  const named = presetOf(useSearch());
  const name = useDocument((state) => state.document.name);
  const { data: names = [], isPending } = useQuery({
    queryKey: ["presets", "names"],
    queryFn: fetchPresetNames,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const wanted = named ?? name;
  return { preset: names.includes(wanted) ? wanted : null, isKnown: !isPending };
}
