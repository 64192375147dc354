import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { toast } from "sonner";
import { errorMessage } from "@/api/client";

/** Does work that may be refused and says why; then queries whose keys begin with `changed` are asked again. */
export function useAttempt(...changed: readonly string[]) {
  const client = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const key = changed.join("\n");
  const attempt = useCallback(
    async (work: () => unknown, failed?: string) => {
      setBusy(true);
      try {
        await work();
        if (key !== "") await client.invalidateQueries({ queryKey: key.split("\n") });
      } catch (error) {
        const reason = errorMessage(error);
        toast.error(failed ?? reason, failed ? { description: reason } : {});
      } finally {
        setBusy(false);
      }
    },
    [client, key],
  );
  return { isBusy, attempt };
}
