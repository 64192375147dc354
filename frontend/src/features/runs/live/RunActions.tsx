import { useQueryClient } from "@tanstack/react-query";
import { GitFork, LoaderCircle, Pencil, RotateCw, Square } from "lucide-react";
import { useState } from "react";
import { toast } from "sonner";
import { useLocation } from "wouter";
import { errorMessage } from "@/api/client";
import { createLoop, resumeRun, stopRun } from "@/api/routes";
import { useLive, useLiveRun } from "@/live/hooks";
import { isFinal } from "@/live/reducer";
import { useOpenLoop } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { ForkDialog } from "../start/ForkDialog";
import { withTrust } from "../start/TrustDialog";
import { AfterRun } from "./AfterRun";

/** Stop, resume where there is something to go on from, fork, and back to the loop. */
export function RunActions({ onResumed }: { onResumed: () => void }) {
  const live = useLiveRun();
  const { store } = useOpenLoop();
  const state = useLive("status", (run) => run.run?.state ?? run.state.state, null);
  const loopId = useLive("status", (run) => run.run?.loop_id ?? null, null);
  const name = useLive("status", (run) => run.run?.name ?? "", "");
  const step = useLive("status", (run) => run.run?.step ?? run.state.step ?? 0, 0);
  const [isBusy, setBusy] = useState(false);
  const [isForking, setForking] = useState(false);
  const [, navigate] = useLocation();
  const client = useQueryClient();
  if (!live) return null;

  const attempt = async (work: () => Promise<unknown>) => {
    setBusy(true);
    try {
      await work();
      await client.invalidateQueries({ queryKey: ["runs"] });
    } catch (error) {
      toast.error(errorMessage(error));
    } finally {
      setBusy(false);
    }
  };
  const edit = async () => {
    if (loopId) {
      navigate(`/loops/${loopId}`);
      return;
    }
    const loop = await createLoop({ yaml: store.getState().text });
    navigate(`/loops/${loop.id}`);
  };
  const isStopping = state === "stopping";
  return (
    <>
      <Button icon={<Pencil size={14} />} onClick={() => void attempt(edit)}>
        {loopId ? "Edit loop" : "Edit as a loop"}
      </Button>
      {step > 0 ? (
        <Button icon={<GitFork size={14} />} onClick={() => setForking(true)}>
          Fork
        </Button>
      ) : null}
      <ForkDialog
        run={{ id: live.id, name, loop_id: loopId }}
        best={live.state.checkpoints.findLast((one) => one.isBest)?.step}
        isOpen={isForking}
        onClose={() => setForking(false)}
      />
      {isFinal(state) && state !== "finished" && step > 0 ? (
        <Button
          icon={<RotateCw size={14} />}
          disabled={isBusy}
          onClick={() =>
            void attempt(async () => {
              const run = await withTrust((trust) => resumeRun(live.id, trust));
              if (run === null) return;
              live.setRun(run);
              onResumed();
            })
          }
        >
          Resume
        </Button>
      ) : null}
      {isFinal(state) ? (
        <AfterRun isBusy={isBusy} attempt={attempt} />
      ) : (
        <Button
          look="danger"
          disabled={isBusy || isStopping}
          icon={
            isStopping ? (
              <LoaderCircle size={14} className="animate-spin" />
            ) : (
              <Square size={12} fill="currentColor" />
            )
          }
          onClick={() => void attempt(async () => live.setRun(await stopRun(live.id)))}
        >
          {isStopping ? "Stopping" : "Stop"}
        </Button>
      )}
    </>
  );
}
