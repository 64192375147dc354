import { LoaderCircle, Play } from "lucide-react";
import { showKeys } from "@/state/actions";
import { useCatalog, useDocument, useSync } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { Tooltip } from "@/ui/Tooltip";
import { runReason, useRunControls, useStarting } from "./useRunControls";

export function RunButton() {
  const isEmpty = useDocument((state) => Object.keys(state.document.nodes).length === 0);
  const catalog = useCatalog();
  const reason = useSync((state) => runReason(state, isEmpty, catalog));
  const missing = useSync((state) => state.check?.missing ?? null);
  const isStarting = useStarting((state) => state.isStarting);
  const { start } = useRunControls();
  return (
    <Tooltip
      text={reason ?? missing ?? "Run this loop"}
      keys={reason ? undefined : showKeys("mod+enter")}
    >
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
