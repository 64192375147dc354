import { useSync } from "@/document/context";
import { groupGpus, groupName } from "@/lib/estimate";
import { formatBytes } from "@/lib/format";
import { useDialogs } from "@/session/dialogs";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { useStarting } from "./starting";
import { useRunControls } from "./useRunControls";

/** A run that is expected not to fit asks once more. */
export function ConfirmRunDialog() {
  const isOpen = useDialogs((state) => state.open === "confirmRun");
  const show = useDialogs((state) => state.show);
  const estimate = useSync((state) => state.check?.estimate ?? null);
  const isStarting = useStarting((state) => state.isStarting);
  const { start } = useRunControls();
  const over = estimate ? groupGpus(estimate).filter((group) => !group.gpu.fits) : [];
  return (
    <Dialog
      title="This may run out of memory"
      description="The estimate is over the memory budget. It can be wrong; the run may also stop with an out-of-memory error."
      isOpen={isOpen}
      onClose={() => show(null)}
      footer={
        <>
          <Button onClick={() => show(null)}>Back to the editor</Button>
          <Button look="primary" disabled={isStarting} onClick={() => start({ force: true })}>
            Run anyway
          </Button>
        </>
      }
    >
      <ul className="flex flex-col gap-1 text-sm">
        {over.map((group) => (
          <li key={group.key} className="flex gap-2">
            <b>{groupName(group)}</b>
            <span className="text-error">
              {formatBytes(group.gpu.peak_bytes)} of {formatBytes(group.gpu.usable_bytes)} usable
            </span>
            <span className="text-muted">in {group.gpu.peak_stage}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
