import { toast } from "sonner";
import { editRun } from "@/api/routes";
import { formatPlural } from "@/lib/format";
import { useOpenLoop } from "@/state/document/context";
import { useRunEdits } from "@/state/runEdits";
import { useAttempt } from "@/state/useAttempt";
import { Button } from "@/ui/Button";

export function RunEditBar() {
  const { runId } = useOpenLoop();
  const changes = useRunEdits((state) => state.changes);
  const send = useRunEdits((state) => state.send);
  const discard = useRunEdits((state) => state.discard);
  const { isBusy, attempt } = useAttempt();
  const paths = Object.keys(changes);
  if (!runId || paths.length === 0) return null;

  const apply = () =>
    attempt(async () => {
      await editRun(runId, changes);
      send(changes);
      toast.success("The change takes effect with the next step.");
    }, "The run rejected the change.");
  return (
    <div className="absolute bottom-3 left-1/2 z-10 flex -translate-x-1/2 items-center gap-3 rounded-3 border border-line bg-raised px-4 py-2 text-sm shadow-3">
      <span title={paths.join("\n")}>
        {formatPlural(paths.length, "change")} not sent to the run
      </span>
      <Button size="small" disabled={isBusy} onClick={discard}>
        Discard
      </Button>
      <Button size="small" look="primary" disabled={isBusy} onClick={() => void apply()}>
        Apply to the run
      </Button>
    </div>
  );
}
