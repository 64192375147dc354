import { useDialogs } from "@/session/dialogs";
import { Button } from "@/ui/Button";

/** An empty loop says how to begin. */
export function CanvasEmpty() {
  const show = useDialogs((state) => state.show);
  return (
    <div className="pointer-events-none absolute inset-0 flex items-center justify-center">
      <div className="pointer-events-auto flex max-w-sm flex-col items-center gap-2 rounded-3 border border-line bg-surface p-6 text-center shadow-2">
        <p className="font-semibold text-base">An empty loop</p>
        <p className="text-muted text-sm">
          Drag a node from the left, double-click the canvas to search, or begin with a preset that
          runs.
        </p>
        <Button look="primary" className="mt-2" onClick={() => show("gallery")}>
          Open the gallery
        </Button>
      </div>
    </div>
  );
}
