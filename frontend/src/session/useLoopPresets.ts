import { useQuery } from "@tanstack/react-query";
import { fetchLoopPresets } from "@/api/routes";

/** Loops that ship with coloop, read once. */
export function useLoopPresets() {
  return useQuery({ queryKey: ["presets", "loops"], queryFn: fetchLoopPresets });
}
