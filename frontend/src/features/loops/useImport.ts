import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { toast } from "sonner";
import { useLocation } from "wouter";
import { ApiError, errorMessage } from "@/api/client";
import { importLoop } from "@/api/routes";

const MAX_BYTES = 4 * 1024 * 1024;

/** Opens YAML files as new loops. What is open stays as it is, and nothing in a file runs. */
export function useImport(): (files: readonly File[]) => Promise<void> {
  const [, navigate] = useLocation();
  const client = useQueryClient();
  return useCallback(
    async (files) => {
      for (const file of files) {
        if (file.size > MAX_BYTES) {
          toast.error(`${file.name} is larger than 4 MiB.`);
          continue;
        }
        try {
          const loop = await importLoop({ yaml: await file.text() });
          await client.invalidateQueries({ queryKey: ["loops"] });
          toast.success(`Opened ${file.name} as a new loop.`);
          navigate(`/loops/${loop.id}`);
        } catch (error) {
          toast.error(`${file.name} could not be opened.`, { description: importProblem(error) });
        }
      }
    },
    [navigate, client],
  );
}

function importProblem(error: unknown): string {
  const detail = error instanceof ApiError ? error.detail : null;
  if (typeof detail === "object" && detail !== null && "diagnostics" in detail) {
    const [first] = (detail as { diagnostics: { message: string; line?: number | null }[] })
      .diagnostics;
    if (first) return first.line ? `Line ${first.line}: ${first.message}` : first.message;
  }
  return errorMessage(error);
}
