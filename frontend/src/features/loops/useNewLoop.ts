import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { toast } from "sonner";
import { useLocation } from "wouter";
import { errorMessage } from "@/api/client";
import * as routes from "@/api/routes";
import { type Beginning, newLoop } from "@/document/sync/newLoop";
import { useDialogs } from "@/session/dialogs";

/** Makes a loop and opens it; what is open now stays as it is. */
export function useNewLoop() {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [isCreating, setCreating] = useState(false);
  const create = useCallback(
    async (name: string, begin: Beginning) => {
      setCreating(true);
      try {
        const loop = await newLoop(name, begin, routes);
        await client.invalidateQueries({ queryKey: ["loops"] });
        useDialogs.getState().show(null);
        navigate(`/loops/${loop.id}`);
      } catch (error) {
        toast.error("The loop could not be created.", { description: errorMessage(error) });
      } finally {
        setCreating(false);
      }
    },
    [client, navigate],
  );
  return { create, isCreating };
}
