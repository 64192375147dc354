import { LoaderCircle, Play } from "lucide-react";
import { showKeys } from "@/app/actions";
import { useDocument, useSync } from "@/document/context";
import { runReason } from "@/features/runs/runReason";
import { useStarting } from "@/features/runs/starting";
import { useRunControls } from "@/features/runs/useRunControls";
import { Button } from "@/ui/Button";
import { Tooltip } from "@/ui/Tooltip";

/** Starts the loop. Where it cannot, it says why. */
export function RunButton() {
  const isEmpty = useDocument((state) => Object.keys(state.document.nodes).length === 0);
  const reason = useSync((state) => runReason(state, isEmpty));
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
