import { type Action, showKeys } from "@/session/actions";
import { useDialogs } from "@/session/dialogs";
import { Dialog } from "@/ui/Dialog";
import { Kbd } from "@/ui/Kbd";

const BY_MOUSE = [
  ["Double-click the canvas", "add a node there"],
  ["Drag from a port", "connect; on empty canvas, add what fits"],
  ["Drag an edge's end away", "disconnect"],
  ["Shift and drag", "select an area"],
  ["Drop a YAML file", "open it as a new loop"],
];

/** Every shortcut there is, from the same registry that runs them. */
export function ShortcutSheet({ actions }: { actions: readonly Action[] }) {
  const isOpen = useDialogs((state) => state.open === "shortcuts");
  const show = useDialogs((state) => state.show);
  const sections = [...new Set(actions.map((action) => action.section))];
  return (
    <Dialog title="Keyboard shortcuts" isOpen={isOpen} onClose={() => show(null)} width="max-w-3xl">
      <div className="columns-1 gap-8 sm:columns-2">
        {sections.map((section) => {
          const listed = actions.filter(
            (action) => action.section === section && action.keys.length > 0,
          );
          if (listed.length === 0) return null;
          return (
            <section key={section} className="mb-4 break-inside-avoid">
              <h3 className="mb-1 font-medium text-muted text-xs">{section}</h3>
              <dl>
                {listed.map((action) => (
                  <div
                    key={action.id}
                    className="flex items-center gap-2 border-line border-b py-1 text-sm"
                  >
                    <dt className="flex-1">{action.label}</dt>
                    <dd className="flex gap-1">
                      {action.keys.map((keys) => (
                        <Kbd key={keys}>{showKeys(keys)}</Kbd>
                      ))}
                    </dd>
                  </div>
                ))}
              </dl>
            </section>
          );
        })}
        <section className="mb-4 break-inside-avoid">
          <h3 className="mb-1 font-medium text-muted text-xs">By mouse</h3>
          <dl>
            {BY_MOUSE.map(([gesture, effect]) => (
              <div key={gesture} className="flex gap-4 border-line border-b py-1 text-sm">
                <dt className="shrink-0">{gesture}</dt>
                <dd className="flex-1 text-right text-muted">{effect}</dd>
              </div>
            ))}
          </dl>
        </section>
      </div>
    </Dialog>
  );
}
