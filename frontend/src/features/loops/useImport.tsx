import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useCallback, useRef } from "react";
import { toast } from "sonner";
import { useLocation } from "wouter";
import { ApiError, errorMessage } from "@/api/client";
import { importLoop } from "@/api/routes";
import { formatBytes } from "@/lib/format";
import { showForeign } from "@/state/foreign";

const MAX_BYTES = 4 * 1024 * 1024;
const MAX_PICTURE_BYTES = 64 * 1024 * 1024;

export function useImportDialog(): { input: ReactNode; ask: () => void } {
  const open = useImport();
  const files = useRef<HTMLInputElement>(null);
  const input = (
    <input
      ref={files}
      type="file"
      accept=".yaml,.yml,.png,.py,.sh,.toml,.txt"
      multiple
      hidden
      aria-label="YAML files"
      onChange={(event) => {
        void open([...(event.target.files ?? [])]);
        event.target.value = "";
      }}
    />
  );
  return { input, ask: () => files.current?.click() };
}

/** Opens files as new loops: YAML, and pictures that carry it. What is open stays as it is, and nothing in a file runs. */
export function useImport(): (files: readonly File[]) => Promise<void> {
  const [, navigate] = useLocation();
  const client = useQueryClient();
  return useCallback(
    async (files) => {
      for (const file of files) {
        const most = file.type === "image/png" ? MAX_PICTURE_BYTES : MAX_BYTES;
        if (file.size > most) {
          toast.error(`${file.name} is larger than ${formatBytes(most)}.`);
          continue;
        }
        try {
          const yaml = await yamlIn(file);
          if (isForeign(file.name, yaml)) {
            showForeign(yaml, file.name);
            continue;
          }
          const loop = await importLoop({ yaml });
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

const SCRIPT = /\.(py|sh|toml|txt)$/i;
const OF_OTHERS =
  /^(actor_rollout_ref|model_name_or_path|per_device_train_batch_size|num_train_epochs|dataset_name)\s*:/m;

/** Whether a file is a configuration of another framework: a script, or YAML with what only theirs have. */
function isForeign(name: string, text: string): boolean {
  return SCRIPT.test(name) || OF_OTHERS.test(text);
}

async function yamlIn(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const { readLoopPng } = await import("./loopPng");
  const { isPicture, yaml } = readLoopPng(bytes);
  if (isPicture && yaml === null)
    throw new Error("No loop found in this picture. Only pictures exported by coloop contain one.");
  if (yaml === null && bytes.includes(0))
    throw new Error(
      "This is not a text file. Import a YAML file, or a picture exported by coloop.",
    );
  return yaml ?? new TextDecoder().decode(bytes);
}

function importProblem(error: unknown): string {
  const [first] = error instanceof ApiError ? error.diagnostics : [];
  if (!first) return errorMessage(error);
  const told = [first.message, first.hint].filter(Boolean).join("; ");
  return first.line ? `Line ${first.line}: ${told}` : told;
}
