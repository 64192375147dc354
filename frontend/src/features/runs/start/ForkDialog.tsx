import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { toast } from "sonner";
import { useLocation } from "wouter";
import { errorMessage } from "@/api/client";
import { fetchCheckpoints, fetchLoop, forkRun } from "@/api/routes";
import type { RunSummary } from "@/api/types";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Select } from "@/ui/Select";
import { Failed, Loading } from "@/ui/States";
import { ForkChanges, type Values } from "./ForkChanges";
import { ForkFields, valuesOf } from "./ForkFields";
import { offered, whyCheckpoint } from "./fork";
import { withTrust } from "./TrustDialog";

interface ForkDialogProps {
  run: Pick<RunSummary, "id" | "name" | "loop_id">;
  isOpen: boolean;
  onClose: () => void;
  /** The step from which it is to go on; without it, the newest checkpoint. */
  at?: number;
  /** The step of the best checkpoint so far, where that is known. */
  best?: number | undefined;
  /** Fields that the new run has otherwise, value by path. */
  changes?: Values;
  /** Why, in a sentence. */
  reason?: string;
}

const WHAT =
  "A new run starts from the weights, optimizer state and schedule position of a checkpoint. This run stays as it is.";

/** A new run that begins with a checkpoint of another one. */
export function ForkDialog(props: ForkDialogProps) {
  const { run, isOpen, onClose, at, best, changes, reason } = props;
  const kept = useQuery({
    queryKey: ["run", run.id, "checkpoints"],
    queryFn: () => fetchCheckpoints(run.id),
    enabled: isOpen,
    staleTime: 0,
  });
  const [chosen, setChosen] = useState<string | null>(null);
  const [isAsNow, setAsNow] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState<Record<string, string>>({});
  const steps = offered(kept.data?.steps ?? [], at);
  const newest = Math.max(...steps);
  const [wanted] = steps;
  const values = changes ?? (isAsNow ? {} : valuesOf(typed));
  const isSame = !isAsNow && Object.keys(values).length === 0;
  const step = chosen ?? (wanted === undefined ? "" : String(wanted));
  const why = at === undefined || chosen !== null ? null : whyCheckpoint(steps, at);
  const fork = async () => {
    setBusy(true);
    try {
      const loop = isAsNow && run.loop_id ? { yaml: (await fetchLoop(run.loop_id)).yaml } : {};
      const name = `${run.name} from ${step}`;
      const asked = { step: Number(step), set: { ...values }, name, force: false, ...loop };
      const made = await withTrust((trust) => forkRun(run.id, { ...asked, trust }));
      onClose();
      if (made) navigate(`/runs/${made.id}`);
    } catch (error) {
      toast.error("The run was not forked.", { description: errorMessage(error) });
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Fork this run"
      description={reason ?? WHAT}
      isOpen={isOpen}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {steps.length > 0 ? (
            <Button look="primary" disabled={isBusy} onClick={() => void fork()}>
              {isBusy ? "Starting" : `Fork from step ${step}`}
            </Button>
          ) : null}
        </>
      }
    >
      {kept.isPending ? <Loading label="Looking for checkpoints" rows={2} /> : null}
      {kept.error ? (
        <Failed title="The checkpoints could not be loaded" error={kept.error} />
      ) : null}
      {kept.data && steps.length === 0 ? (
        <p className="text-sm">
          There is no checkpoint yet. A run writes them at the interval set in its loop, and when it
          is stopped.
        </p>
      ) : null}
      {steps.length > 0 ? (
        <div className="flex flex-col gap-3 text-sm">
          <div className="flex items-center gap-3">
            <span className="w-24 text-muted">Checkpoint</span>
            <Select
              label="Checkpoint"
              value={step}
              className="w-60"
              options={steps.map((one) => ({
                value: String(one),
                label: named(one, newest, at, best),
              }))}
              onChange={setChosen}
            />
          </div>
          {why ? <p className="rounded-2 bg-warning-soft px-3 py-1.5 text-warning">{why}</p> : null}
          {changes === undefined && !isAsNow ? (
            <ForkFields run={run.id} typed={typed} onTyped={setTyped} />
          ) : null}
          <ForkChanges
            run={run}
            values={changes ?? (isSame || isAsNow ? undefined : values)}
            isAsNow={isAsNow}
            onAsNow={setAsNow}
          />
          {isSame ? (
            <p role="note" className="text-muted">
              Unchanged, this fork repeats its parent: the same seed gives the same numbers.
            </p>
          ) : null}
        </div>
      ) : null}
    </Dialog>
  );
}

function named(
  step: number,
  newest: number,
  at: number | undefined,
  best: number | undefined,
): string {
  const more = step === best ? " (best so far)" : step === newest ? " (newest)" : "";
  const side = at !== undefined && step > at ? `, after step ${at}` : "";
  return `step ${step}${side}${more}`;
}
