import { deleteRun } from "@/api/routes";
import type { RunSummary } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { useAttempt } from "@/state/useAttempt";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";

interface DeleteRunDialogProps {
  runs: readonly RunSummary[];
  onClose: () => void;
}

export function DeleteRunDialog({ runs, onClose }: DeleteRunDialogProps) {
  const { attempt } = useAttempt("runs");
  const [first] = runs;
  const what = runs.length === 1 ? `“${first?.name}”` : formatPlural(runs.length, "run");
  const remove = async () => {
    for (const run of runs) await deleteRun(run.id);
  };
  return (
    <Dialog
      title={`Delete ${what}?`}
      description={`${runs.length === 1 ? "Its folder is deleted" : "Their folders are deleted"} permanently, with metrics, samples and checkpoints. Forked runs are kept.`}
      isOpen
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{runs.length === 1 ? "Keep it" : "Keep them"}</Button>
          <Button
            look="danger"
            onClick={() => {
              onClose();
              void attempt(remove);
            }}
          >
            Delete
          </Button>
        </>
      }
    />
  );
}
