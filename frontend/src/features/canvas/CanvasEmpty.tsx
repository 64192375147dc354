import { modeNamed } from "@/catalog/modes";
import { useCatalog, useDocument } from "@/document/context";
import { useMode, useSetMode } from "@/document/useMode";
import { useDialogs } from "@/session/dialogs";
import { Button } from "@/ui/Button";
import { RadioCards } from "@/ui/RadioCards";

/** An empty loop asks what it is for, and says how to begin. */
export function CanvasEmpty() {
  const show = useDialogs((state) => state.show);
  return (
    <div className="pointer-events-none absolute inset-0 flex items-center justify-center p-2">
      <div className="pointer-events-auto flex max-h-full max-w-lg flex-col items-center gap-2 overflow-y-auto rounded-3 border border-line bg-surface p-5 text-center shadow-2">
        <p className="font-semibold text-base">An empty loop</p>
        <Modes />
        <p className="text-muted text-sm">
          Drag a node from the left, double-click the canvas to search, or begin with a preset that
          runs.
        </p>
        <Button look="primary" className="mt-1" onClick={() => show("gallery")}>
          Open the gallery
        </Button>
      </div>
    </div>
  );
}

/** The modes. What is chosen decides what is offered and what nodes begin with. */
function Modes() {
  const catalog = useCatalog();
  const isReadonly = useDocument((state) => state.isReadonly);
  const chosen = useMode();
  const choose = useSetMode();
  return (
    <RadioCards
      legend="What is it for?"
      value={chosen.name as string}
      options={catalog.modes.map((mode) => ({ ...mode, value: mode.name }))}
      isDisabled={isReadonly}
      onChange={(name) => choose(modeNamed(catalog, name))}
    />
  );
}
