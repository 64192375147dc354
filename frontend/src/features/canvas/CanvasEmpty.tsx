import { useCatalog, useDocument } from "@/document/context";
import { useMode, useSetMode } from "@/document/useMode";
import { useDialogs } from "@/session/dialogs";
import { Button } from "@/ui/Button";
import { classes } from "@/ui/classes";

/** An empty loop asks what it is for, and says how to begin. */
export function CanvasEmpty() {
  const show = useDialogs((state) => state.show);
  return (
    <div className="pointer-events-none absolute inset-0 flex items-center justify-center p-2">
      <div className="pointer-events-auto flex max-h-full max-w-lg flex-col items-center gap-2 overflow-y-auto rounded-3 border border-line bg-surface p-5 text-center shadow-2">
        <p className="font-semibold text-base">An empty loop</p>
        <ModeCards />
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

/** The modes, each with its sentence. What is chosen decides what is offered and what nodes begin with. */
function ModeCards() {
  const { modes } = useCatalog();
  const isReadonly = useDocument((state) => state.isReadonly);
  const chosen = useMode();
  const choose = useSetMode();
  return (
    <fieldset className="flex w-full flex-col gap-1.5 text-left" disabled={isReadonly}>
      <legend className="w-full pb-1.5 text-center text-muted text-sm">What is it for?</legend>
      {modes.map((mode) => (
        <label
          key={mode.name}
          className={classes(
            "flex cursor-pointer gap-2.5 rounded-2 border px-3 py-2 has-focus-visible:outline-2 has-focus-visible:outline-focus",
            mode.name === chosen.name
              ? "border-accent bg-accent-soft"
              : "border-line hover:border-line-strong",
          )}
        >
          <input
            type="radio"
            name="mode of the empty loop"
            className="mt-1 shrink-0 accent-(--accent)"
            checked={mode.name === chosen.name}
            onChange={() => choose(mode)}
          />
          <span>
            <span className="block font-medium text-sm">{mode.title}</span>
            <span className="block text-muted text-xs">{mode.help}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
