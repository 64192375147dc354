import { GitCompareArrows, Trash2, X } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import type { RunSummary } from "@/api/types";
import { isFinal } from "@/live/reducer";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { DeleteRunDialog } from "./DeleteRunDialog";

export const MAX_COMPARED = 6;

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
