import { useCallback } from "react";
import { useLocation } from "wouter";
import { presetAddress } from "@/session/presetAddress";

/** Opens a preset to look at. It becomes a loop of the user's own with the first change. */
export function useOpenPreset(onOpened?: () => void) {
  const [, navigate] = useLocation();
  return useCallback(
    (name: string) => {
      navigate(presetAddress(name));
      onOpened?.();
    },
    [navigate, onOpened],
  );
}
