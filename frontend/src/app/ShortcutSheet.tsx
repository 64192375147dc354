import type { ReactNode } from "react";
import { type Action, isSingleKey, showKeys } from "@/state/actions";
import { showDialog, useDialogs } from "@/state/dialogs";
import { setPreferences, usePreferences } from "@/state/preferences";
import { Dialog } from "@/ui/Dialog";
import { Kbd } from "@/ui/Kbd";
import { Switch } from "@/ui/Switch";

const BY_MOUSE = [
  ["Double-click the canvas", "add a node there"],
  ["Drag from a port", "connect; on empty canvas, add what fits"],
  ["Drag an edge's end away", "disconnect"],
  ["Alt and drag across edges", "cut them"],
  ["Drag a node onto an edge", "insert it, where it fits"],
  ["Drag a node into a frame", "place it in that pool"],
  ["Shift and drag", "select an area"],
  ["Drop YAML, a picture of a loop or a run's folder", "open it as a new loop"],
];

const IN_THE_GRAPH = [
  ["Arrow keys", "go to another node; move the selected one"],
  ["Shift ← →", "go to an edge of the node"],
  ["Enter", "select the focused item"],
];

const GROW = showKeys("mod") === "⌘" ? "Ctrl Shift ⌘" : "Shift Alt";
const IN_A_TEXT = [
  [showKeys("mod+f"), "find and replace"],
  [`${GROW} → ←`, "expand the selection, and shrink it"],
  ["Ctrl Space", "suggest names"],
  ["Alt ↑ ↓", "move the line"],
  ["Escape, then Tab", "leave the editor"],
  ["Ctrl M", "switch Tab between indenting and moving the focus"],
];

export function ShortcutSheet({ actions }: { actions: readonly Action[] }) {
  const isOpen = useDialogs((state) => state.open === "shortcuts");
  const hasSingleKeys = usePreferences((state) => state.hasSingleKeys);
  const sections = [...new Set(actions.map((action) => action.section))];
  return (
    <Dialog
      title="Keyboard shortcuts"
      isOpen={isOpen}
      onClose={() => showDialog(null)}
      width="max-w-3xl"
    >
      <div className="mb-4 flex items-start gap-3 rounded-2 bg-sunken px-3 py-2 text-sm">
        <Switch
          id="single-keys"
          isOn={hasSingleKeys}
          describedBy="single-keys-help"
          onChange={(isOn) => setPreferences({ hasSingleKeys: isOn })}
        />
        <div>
          <label htmlFor="single-keys">Single-key shortcuts</label>
          <p id="single-keys-help" className="text-muted text-xs">
            When this is off, only shortcuts with {showKeys("mod")} work, and those that act on the
            selection in the graph.
          </p>
        </div>
      </div>
      <div className="columns-1 gap-8 sm:columns-2">
        {sections.map((section) => {
          const keysOf = ({ keys }: Action) =>
            keys.filter((one) => hasSingleKeys || !isSingleKey(one));
          const listed = actions.filter(
            (action) => action.section === section && keysOf(action).length > 0,
          );
          if (listed.length === 0) return null;
          return (
            <Listed key={section} title={section}>
              {listed.map((action) => (
                <div
                  key={action.id}
                  className="flex items-center gap-2 border-line border-b py-1 text-sm"
                >
                  <dt className="flex-1">{action.label}</dt>
                  <dd className="flex gap-1">
                    {keysOf(action).map((keys) => (
                      <Kbd key={keys}>{showKeys(keys)}</Kbd>
                    ))}
                  </dd>
                </div>
              ))}
            </Listed>
          );
        })}
        <Gestures title="In the graph" gestures={IN_THE_GRAPH} />
        <Gestures title="In the text editor" gestures={IN_A_TEXT} />
        <Gestures title="With the mouse" gestures={BY_MOUSE} />
      </div>
    </Dialog>
  );
}

function Gestures({ title, gestures }: { title: string; gestures: readonly string[][] }) {
  return (
    <Listed title={title}>
      {gestures.map(([gesture, effect]) => (
        <div key={gesture} className="flex gap-4 border-line border-b py-1 text-sm">
          <dt className="shrink-0">{gesture}</dt>
          <dd className="flex-1 text-right text-muted">{effect}</dd>
        </div>
      ))}
    </Listed>
  );
}

function Listed({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="mb-4 break-inside-avoid">
      <h3 className="mb-1 font-medium text-muted text-xs">{title}</h3>
      <dl>{children}</dl>
    </section>
  );
}
