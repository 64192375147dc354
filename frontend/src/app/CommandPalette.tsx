import { Command, defaultFilter } from "cmdk";
import { Blocks, Workflow } from "lucide-react";
import { Dialog as RadixDialog } from "radix-ui";
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { scoreKind } from "@/catalog/search";
import { useAddInMiddle, useInsertInMiddle } from "@/features/palette/useAddInMiddle";
import { type Action, isSingleKey, showKeys } from "@/state/actions";
import { showDialog, useDialogs } from "@/state/dialogs";
import { useOpenLoop } from "@/state/document/context";
import { usePreferences } from "@/state/preferences";
import { hitAddress, useBlocks, useLoopSearch } from "@/state/queries";
import { showField } from "@/state/selection";
import { KindIcon } from "@/ui/KindIcon";

const HEADING =
  "[&_[cmdk-group-heading]]:px-3 [&_[cmdk-group-heading]]:py-1 [&_[cmdk-group-heading]]:text-faint [&_[cmdk-group-heading]]:text-xs";
/** What is added is told from other items by this, and found by the words for its kind. */
const ADD = "add:";

export function CommandPalette({ actions }: { actions: readonly Action[] }) {
  const { store, catalog } = useOpenLoop();
  const addInMiddle = useAddInMiddle();
  const insertInMiddle = useInsertInMiddle();
  const blocks = useBlocks();
  const [search, setSearch] = useState("");
  const isOpen = useDialogs((state) => state.open === "commands");
  const hasSingleKeys = usePreferences((state) => state.hasSingleKeys);
  const keysOf = (action: Action) =>
    action.keys.find((keys) => hasSingleKeys || !isSingleKey(keys)) ?? null;
  const sections = [...new Set(actions.map((action) => action.section))];
  const run = (act: () => void) => {
    showDialog(null);
    act();
  };
  return (
    <RadixDialog.Root open={isOpen} onOpenChange={(open) => !open && showDialog(null)}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className="fixed inset-0 z-40 bg-scrim" />
        <RadixDialog.Content
          aria-describedby={undefined}
          className="fixed top-[14vh] left-1/2 z-40 w-[min(560px,calc(100vw-32px))] -translate-x-1/2 overflow-hidden rounded-3 border border-line bg-raised shadow-3"
        >
          <RadixDialog.Title className="sr-only">All commands</RadixDialog.Title>
          <Command
            label="All commands"
            loop
            filter={(value, search, keywords) => {
              if (value.startsWith(HIT)) return 0.01;
              const kind = value.startsWith(ADD) ? catalog.kinds[value.slice(ADD.length)] : null;
              return kind ? scoreKind(kind, search) : defaultFilter(value, search, keywords);
            }}
          >
            <Command.Input
              autoFocus
              value={search}
              onValueChange={setSearch}
              placeholder="Type a command or the name of a node"
              className="h-12 w-full border-line border-b bg-transparent px-4 text-base outline-none"
            />
            <Command.List className="max-h-[46vh] overflow-y-auto p-1">
              <Command.Empty className="p-4 text-muted text-sm">No matches.</Command.Empty>
              {sections.map((section) => (
                <Command.Group key={section} heading={section} className={HEADING}>
                  {actions
                    .filter((action) => action.section === section && action.id !== "commands")
                    .filter((action) => !action.isEnabled || action.isEnabled())
                    .map((action) => (
                      <Item
                        key={action.id}
                        value={`${action.label} ${action.id}`}
                        label={action.label}
                        note={showKeys(keysOf(action) ?? "")}
                        onSelect={() => run(action.run)}
                      />
                    ))}
                </Command.Group>
              ))}
              <Command.Group heading="Nodes" className={HEADING}>
                {Object.entries(store.getState().document.nodes).map(([id, node]) => (
                  <Item
                    key={id}
                    value={`node ${id}`}
                    icon={<KindIcon name={catalog.kinds[node.kind]?.icon} size={14} />}
                    label={id}
                    note={catalog.kinds[node.kind]?.title ?? node.kind}
                    onSelect={() => run(() => void showField(id, null))}
                  />
                ))}
              </Command.Group>
              {store.getState().isReadonly ? null : (
                <Command.Group heading="Insert a block" className={HEADING}>
                  {blocks.map((block) => (
                    <Item
                      key={block.id}
                      value={`block ${block.title} ${block.id}`}
                      icon={<Blocks size={14} aria-hidden="true" />}
                      label={block.title}
                      note="insert"
                      onSelect={() => run(() => insertInMiddle(block))}
                    />
                  ))}
                </Command.Group>
              )}
              {store.getState().isReadonly ? null : (
                <Command.Group heading="Add a node" className={HEADING}>
                  {Object.values(catalog.kinds).map((kind) => (
                    <Item
                      key={kind.kind}
                      value={`${ADD}${kind.kind}`}
                      icon={<KindIcon name={kind.icon} size={14} />}
                      label={kind.title}
                      note="add"
                      onSelect={() => run(() => addInMiddle(kind))}
                    />
                  ))}
                </Command.Group>
              )}
              <LoopHits search={search} onChosen={run} />
            </Command.List>
          </Command>
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  );
}

/** What is found is told from other items by this; the service says that it fits. */
const HIT = "hit:";

interface LoopHitsProps {
  search: string;
  onChosen: (act: () => void) => void;
}

function LoopHits({ search, onChosen }: LoopHitsProps) {
  const { catalog, loopId } = useOpenLoop();
  const [, navigate] = useLocation();
  const { data = [] } = useLoopSearch(search);
  const others = data.filter(({ loop }) => loop !== loopId);
  if (others.length === 0) return null;
  return (
    <Command.Group heading="In other loops" className={HEADING}>
      {others.map(({ loop, loop_name: name, node, kind, model }) => (
        <Item
          key={`${loop} ${node}`}
          value={`${HIT}${loop} ${node ?? ""}`}
          icon={
            node === null ? (
              <Workflow size={14} />
            ) : (
              <KindIcon name={catalog.kinds[kind ?? ""]?.icon} size={14} />
            )
          }
          label={node ?? name}
          more={model ? ` · ${model}` : ""}
          note={node === null ? "loop" : name}
          onSelect={() => onChosen(() => navigate(hitAddress(loop, node)))}
        />
      ))}
    </Command.Group>
  );
}

interface ItemProps {
  value: string;
  icon?: ReactNode;
  label: string;
  more?: string;
  note: string;
  onSelect: () => void;
}

function Item({ value, icon, label, more = "", note, onSelect }: ItemProps) {
  return (
    <Command.Item
      value={value}
      className="flex h-9 cursor-default items-center gap-2 rounded-2 px-3 text-sm data-[selected=true]:bg-hover"
      onSelect={onSelect}
    >
      {icon}
      <span className="min-w-0 flex-1 truncate">
        {label}
        <span className="text-muted">{more}</span>
      </span>
      <span className="max-w-1/2 truncate text-faint text-xs">{note}</span>
    </Command.Item>
  );
}
