import { LoaderCircle, Play } from "lucide-react";
import { showKeys } from "@/app/actions";
import { useDocument, useSync } from "@/document/context";
import { indexProblems } from "@/features/problems/group";
import { useStarting } from "@/features/runs/starting";
import { useRunControls } from "@/features/runs/useRunControls";
import { formatPlural } from "@/lib/format";
import { Button } from "@/ui/Button";
import { Tooltip } from "@/ui/Tooltip";

/** What can be drawn, checked and estimated, but not run by this version. */
const REFUSED = "run.not_yet_runnable";

/** Starts the loop. Where it cannot, it says why. */
export function RunButton() {
  const reason = useReason();
  const isStarting = useStarting((state) => state.isStarting);
  const { start } = useRunControls();
  return (
    <Tooltip text={reason ?? "Run this loop"} keys={reason ? undefined : showKeys("mod+enter")}>
      <Button
        look="primary"
        aria-disabled={reason !== null || isStarting}
        icon={
          isStarting ? (
            <LoaderCircle size={14} className="animate-spin" />
          ) : (
            <Play size={14} fill="currentColor" />
          )
        }
        onClick={() => {
          if (reason === null && !isStarting) start();
        }}
      >
        {isStarting ? "Starting" : "Run"}
      </Button>
    </Tooltip>
  );
}

function useReason(): string | null {
  const errors = useSync((state) =>
    state.check ? indexProblems(state.check.report.diagnostics).total.error : 0,
  );
  const isBroken = useSync((state) => state.brokenText !== null);
  const isOffline = useSync((state) => state.checkStatus === "offline");
  const isEmpty = useDocument((state) => Object.keys(state.document.nodes).length === 0);
  const refusal = useSync(
    (state) => state.check?.report.diagnostics.find((one) => one.code === REFUSED)?.message ?? null,
  );
  if (isBroken) return "The text does not read. Mend or discard it first.";
  if (isEmpty) return "There is nothing to run yet.";
  if (isOffline) return "The server does not answer.";
  if (errors > 0) return `${formatPlural(errors, "error")} to mend first.`;
  if (refusal !== null)
    return refusal.charAt(0).toUpperCase() + refusal.slice(1).replaceAll("`", "");
  return null;
}
