import { useQuery } from "@tanstack/react-query";
import { fetchPresetNames } from "@/api/routes";

/** Names of the loops that ship with coloop, without what the gallery says of them; read once. */
export function usePresetNames(): { names: readonly string[]; isPending: boolean } {
  const names = useQuery({
    queryKey: ["presets", "names"],
    queryFn: fetchPresetNames,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return { names: names.data ?? NONE, isPending: names.isPending };
}

const NONE: readonly string[] = [];
