import { useMode } from "@/document/useMode";
import { useDialogs } from "@/session/dialogs";
import { Button } from "@/ui/Button";

/** An empty loop says what it is for, which was asked when it was made, and how to begin. */
export function CanvasEmpty() {
  const show = useDialogs((state) => state.show);
  const mode = useMode();
  return (
    <div className="pointer-events-none absolute inset-0 flex items-center justify-center p-2">
      <div className="pointer-events-auto flex max-h-full max-w-md flex-col items-center gap-2 overflow-y-auto rounded-3 border border-line bg-surface p-5 text-center shadow-2">
        <p className="font-semibold text-base">An empty loop</p>
        <p className="text-sm">
          <b className="font-medium">{mode.title}.</b> {mode.help}
        </p>
        <p className="text-muted text-sm">
          Drag a node from the left, double-click the canvas to search, or start from a preset.
        </p>
        <Button look="primary" className="mt-1" onClick={() => show("gallery")}>
          Open the gallery
        </Button>
      </div>
    </div>
  );
}
