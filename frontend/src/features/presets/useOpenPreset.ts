import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { toast } from "sonner";
import { useLocation } from "wouter";
import { errorMessage } from "@/api/client";
import { createLoop, fetchLoopPreset } from "@/api/routes";

/** Makes a new loop from a preset and opens it. */
export function useOpenPreset(onOpened?: () => void) {
  const [opening, setOpening] = useState<string | null>(null);
  const [, navigate] = useLocation();
  const client = useQueryClient();
  const open = useCallback(
    async (name: string) => {
      setOpening(name);
      try {
        const { yaml } = await fetchLoopPreset(name);
        const loop = await createLoop({ yaml });
        await client.invalidateQueries({ queryKey: ["loops"] });
        navigate(`/loops/${loop.id}`);
        onOpened?.();
      } catch (error) {
        toast.error("The preset could not be opened.", { description: errorMessage(error) });
      } finally {
        setOpening(null);
      }
    },
    [navigate, client, onOpened],
  );
  return { open, opening };
}
