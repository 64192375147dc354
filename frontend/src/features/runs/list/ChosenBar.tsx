import { GitCompareArrows, Trash2, X } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import { deleteRun } from "@/api/routes";
import type { RunSummary } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { isFinal } from "@/live/reducer";
import { useAttempt } from "@/state/useAttempt";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { IconButton } from "@/ui/IconButton";

export function ChosenBar({ runs, onClear }: { runs: readonly RunSummary[]; onClear: () => void }) {
  const [, navigate] = useLocation();
  const [isDeleting, setDeleting] = useState(false);
  if (runs.length === 0) return null;
  const goesOn = runs.find((run) => !isFinal(run.state));
  const ids = runs.map((run) => encodeURIComponent(run.id)).join(",");
  return (
    <section
      aria-label="Chosen runs"
      className="sticky bottom-4 mx-auto mt-4 flex w-fit items-center gap-2 rounded-3 border border-line bg-raised px-3 py-2 shadow-3"
    >
      <span className="tabular px-1 text-sm">{runs.length} chosen</span>
      <Button
        look="primary"
        icon={<GitCompareArrows size={14} />}
        refusal={runs.length < 2 ? "Choose a second run to compare with" : null}
        onClick={() => navigate(`/runs/compare?runs=${ids}`)}
      >
        Compare
      </Button>
      <Button
        icon={<Trash2 size={14} />}
        refusal={goesOn ? `${goesOn.name} is still running; stop it before deleting` : null}
        onClick={() => setDeleting(true)}
      >
        Delete…
      </Button>
      <IconButton label="Clear selection" size="small" onClick={onClear} icon={<X size={16} />} />
      {isDeleting ? (
        <DeleteRunDialog
          runs={runs}
          onClose={() => {
            setDeleting(false);
            onClear();
          }}
        />
      ) : null}
    </section>
  );
}

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
