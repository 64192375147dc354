import { ChevronLeft } from "lucide-react";
import { useSelection } from "@/session/selection";
import { Button } from "@/ui/Button";
import { Settings } from "./Settings";

/** Settings of what is selected, in the place of the charts: the graph stays where it is. */
export function RunSettings() {
  return (
    <div className="flex h-full min-h-0 flex-col bg-surface">
      <div className="shrink-0 border-line border-b p-1.5">
        <Button
          size="small"
          look="quiet"
          icon={<ChevronLeft size={14} />}
          onClick={() => useSelection.getState().clear()}
        >
          Charts
        </Button>
      </div>
      <div className="min-h-0 flex-1">
        <Settings />
      </div>
    </div>
  );
}
