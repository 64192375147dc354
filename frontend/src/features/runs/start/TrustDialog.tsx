import { useLocation } from "wouter";
import { create } from "zustand";
import { ApiError } from "@/api/client";
import { fetchRunSpec, resumeRun, startRun } from "@/api/routes";
import type { Bodies, RunSummary } from "@/api/types";
import { showDialog } from "@/state/dialogs";
import { useAttempt } from "@/state/useAttempt";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";

/** A run of a model that brings its own Python asks once more. */
export function TrustDialog() {
  const asking = useTrust((state) => state.asking);
  return (
    <Dialog
      title="Run the model’s own Python?"
      description="The model’s folder contains Python code, which runs in the engine with your permissions and outside of the sandbox. Run it only if you trust the author of the model."
      isOpen={asking !== null}
      onClose={() => asking?.answer(false)}
      footer={
        <>
          <Button onClick={() => asking?.answer(false)}>Do not run</Button>
          <Button look="danger" onClick={() => asking?.answer(true)}>
            Run its Python
          </Button>
        </>
      }
    >
      <ul className="flex flex-col gap-1 font-mono text-sm">
        {asking?.paths.map((path) => (
          <li key={path} className="break-all">
            {path}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

/** Asks for a yes before Python of a model's folder runs. A yes is for one start. */
interface Asking {
  paths: string[];
  answer: (isYes: boolean) => void;
}

export const useTrust = create<{ asking: Asking | null }>()(() => ({ asking: null }));

/** Starts something; where the service wants a yes, asks and starts it again. Null after a no. */
export async function withTrust<T>(start: (trust: boolean) => Promise<T>): Promise<T | null> {
  try {
    return await start(false);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "foreign.not_confirmed") throw error;
    showDialog(null);
    const isYes = await new Promise<boolean>((answer) =>
      useTrust.setState({ asking: { paths: pathsOf(error.detail), answer } }),
    );
    useTrust.setState({ asking: null });
    return isYes ? start(true) : null;
  }
}

function pathsOf(detail: unknown): string[] {
  if (typeof detail !== "object" || detail === null || !("paths" in detail)) return [];
  return Array.isArray(detail.paths) ? detail.paths.map(String) : [];
}

/** Starts a run and goes to it; stays where the user did not agree. */
export function useStartRun() {
  const [, navigate] = useLocation();
  const { isBusy, attempt } = useAttempt("runs");
  const start = (begin: () => Promise<RunSummary | null>) =>
    void attempt(async () => {
      const run = await begin();
      if (run) navigate(`/runs/${run.id}`);
    });
  return { isBusy, attempt, start };
}

/** Starts a run once more, with other values where `change` has some. Null where the user did not agree. */
export async function runAgain(
  { id, name, tags, loop_id }: RunSummary,
  change: Partial<Bodies["NewRun"]> = {},
): Promise<RunSummary | null> {
  const yaml = change.yaml ?? (await fetchRunSpec(id)).yaml;
  const loop = loop_id === null ? {} : { loop_id };
  return withTrust((trust) => startRun({ name, tags, ...loop, ...change, yaml, trust }));
}

export function resumeFrom({ id }: RunSummary): Promise<RunSummary | null> {
  return withTrust((trust) => resumeRun(id, trust));
}
