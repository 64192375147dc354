import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { errorMessage } from "@/api/client";
import { fetchCheckpoints, forkRun } from "@/api/routes";
import type { Bodies } from "@/api/types";
import { useLive } from "@/live/hooks";
import { useRecord } from "@/live/recordContext";
import { toast } from "@/session/toast";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Select } from "@/ui/Select";
import { Failed, Loading } from "@/ui/States";
import { withTrust } from "./trust";

interface ForkDialogProps {
  isOpen: boolean;
  onClose: () => void;
  /** Fields that the new run has otherwise, value by path. */
  changes?: Readonly<NonNullable<Bodies["ForkRun"]["set"]>>;
  /** Why, in a sentence. */
  reason?: string;
}

/** A new run that begins with a checkpoint of this one. */
export function ForkDialog({ isOpen, onClose, changes = {}, reason }: ForkDialogProps) {
  const live = useRecord();
  const name = useLive("status", (run) => run.run?.name ?? "", "");
  const id = live?.id ?? "";
  const kept = useQuery({
    queryKey: ["run", id, "checkpoints"],
    queryFn: () => fetchCheckpoints(id),
    enabled: isOpen,
    staleTime: 0,
  });
  const [chosen, setChosen] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [, navigate] = useLocation();
  const steps = kept.data?.steps.toReversed() ?? [];
  const step = chosen ?? (steps[0] === undefined ? "" : String(steps[0]));
  const best = live?.state.checkpoints.findLast((one) => one.isBest)?.step;
  const fork = async () => {
    setBusy(true);
    try {
      const run = await withTrust((trust) =>
        forkRun(id, {
          step: Number(step),
          set: { ...changes },
          name: `${name} from ${step}`,
          force: false,
          trust,
        }),
      );
      if (run) navigate(`/runs/${run.id}`);
      onClose();
    } catch (error) {
      toast.error("The run was not forked.", { description: errorMessage(error) });
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Fork this run"
      description={
        reason ??
        "A new run begins with the weights, optimizer and place in the schedule of a checkpoint. This run stays as it is."
      }
      isOpen={isOpen}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            disabled={isBusy || steps.length === 0}
            onClick={() => void fork()}
          >
            {isBusy ? "Starting" : "Fork"}
          </Button>
        </>
      }
    >
      {kept.isPending ? <Loading label="Looking for checkpoints" rows={2} /> : null}
      {kept.error ? <Failed title="The checkpoints could not be read" error={kept.error} /> : null}
      {kept.data && steps.length === 0 ? (
        <p className="text-sm">
          No checkpoint is kept yet. A run writes one as often as its loop says, and when it is
          stopped.
        </p>
      ) : null}
      {steps.length > 0 ? (
        <div className="flex flex-col gap-3 text-sm">
          <div className="flex items-center gap-3">
            <span className="w-24 text-muted">Checkpoint</span>
            <Select
              label="Checkpoint"
              value={step}
              className="w-52"
              options={steps.map((one) => ({
                value: String(one),
                label: `step ${one}${one === best ? " (best so far)" : one === steps[0] ? " (newest)" : ""}`,
              }))}
              onChange={setChosen}
            />
          </div>
          {Object.entries(changes).map(([path, value]) => (
            <p key={path} className="font-mono text-xs">
              {path} = {JSON.stringify(value)}
            </p>
          ))}
        </div>
      ) : null}
    </Dialog>
  );
}
