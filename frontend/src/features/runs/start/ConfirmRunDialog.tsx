import { groupGpus, groupName } from "@/lib/estimate";
import { formatBytes } from "@/lib/format";
import { showDialog, showHardwarePresets, useDialogs } from "@/state/dialogs";
import { useSync } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { useRunControls, useStarting } from "./useRunControls";

export function ConfirmRunDialog() {
  const isOpen = useDialogs((state) => state.open === "confirmRun");
  const estimate = useSync((state) => state.check?.estimate ?? null);
  const isStarting = useStarting((state) => state.isStarting);
  const { start } = useRunControls();
  const missing = useSync((state) => state.check?.missing ?? null);
  const over = estimate ? groupGpus(estimate).filter((group) => group.gpu.fits === false) : [];
  return (
    <Dialog
      title={missing ? "Hardware not available" : "This may run out of memory"}
      description={
        missing
          ? `${missing} If you start the run anyway, it waits for the GPUs and then fails.`
          : "The estimate exceeds the memory budget. Estimates can be wrong, but the run may stop with an out-of-memory error."
      }
      isOpen={isOpen}
      onClose={() => showDialog(null)}
      footer={
        <>
          <Button onClick={() => showDialog(null)}>Back to the editor</Button>
          <Button
            look={missing ? "plain" : "primary"}
            disabled={isStarting}
            onClick={() => start({ force: true })}
          >
            Run anyway
          </Button>
          {missing ? (
            <Button
              look="primary"
              onClick={() => {
                showDialog(null);
                setTimeout(() => showHardwarePresets(true));
              }}
            >
              Choose hardware
            </Button>
          ) : null}
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
