import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { toast } from "sonner";
import { errorMessage } from "@/api/client";

export function useRunWork(): {
  isBusy: boolean;
  attempt: (work: () => Promise<unknown>) => Promise<void>;
} {
  const client = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const attempt = useCallback(
    async (work: () => Promise<unknown>) => {
      setBusy(true);
      try {
        await work();
      } catch (error) {
        toast.error(errorMessage(error));
      } finally {
        setBusy(false);
      }
      await client.invalidateQueries({ queryKey: ["runs"] });
    },
    [client],
  );
  return { isBusy, attempt };
}
