import { Command } from "cmdk";
import { useMemo } from "react";
import { type ScorerChoice, scorerChoices } from "@/catalog/scorers";
import type { Payee } from "@/document/rewards";
import { kindColor } from "@/lib/colors";
import { connect } from "@/state/commands/edges";
import { useCatalog, useDocument, useOpenLoop } from "@/state/document/context";
import { Dialog } from "@/ui/Dialog";
import { KindIcon } from "@/ui/KindIcon";
import { RichText } from "@/ui/RichText";
import { newSource, scoresPort, unconnected } from "./newSource";

interface AddSourceProps {
  payee: Payee;
  isOpen: boolean;
  onClose: () => void;
  onAdded: (node: string) => void;
}

const GROUP =
  "[&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:py-1 [&_[cmdk-group-heading]]:text-muted [&_[cmdk-group-heading]]:text-xs";

export function AddSource({ payee, isOpen, onClose, onAdded }: AddSourceProps) {
  return (
    <Dialog
      title="Add a source"
      description={`Its score of a row is added to the reward of ${payee.node}, with an initial weight of 1.`}
      isOpen={isOpen}
      onClose={onClose}
    >
      {isOpen ? <Choices payee={payee} onClose={onClose} onAdded={onAdded} /> : null}
    </Dialog>
  );
}

function Choices({ payee, onClose, onAdded }: Omit<AddSourceProps, "isOpen">) {
  const catalog = useCatalog();
  const { store } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const type = scoresPort(catalog, document, payee);
  const choices = useMemo(() => scorerChoices(catalog, type), [catalog, type]);
  const present = useMemo(() => unconnected(catalog, document, payee), [catalog, document, payee]);
  const own = choices.filter(({ isCode }) => isCode);
  const built = choices.filter(({ isCode }) => !isCode);
  const add = (choice: ScorerChoice) => {
    onAdded(newSource(catalog, store, payee, choice));
    onClose();
  };
  return (
    <Command label="Sources to add" loop className="rounded-2 border border-line">
      <Command.Input
        autoFocus
        placeholder="Search: exact, length, python, model"
        className="h-10 w-full border-line border-b bg-transparent px-3 text-sm outline-none"
      />
      <Command.List className="max-h-[46vh] overflow-y-auto p-1">
        <Command.Empty className="p-3 text-muted text-sm">No source fits.</Command.Empty>
        {present.length > 0 ? (
          <Command.Group heading="In this loop" className={GROUP}>
            {present.map(({ node, from }) => (
              <Command.Item
                key={node}
                value={`in this loop ${node}`}
                className="flex cursor-default items-center gap-2 rounded-2 px-2 py-1.5 text-sm data-[selected=true]:bg-hover"
                onSelect={() => {
                  const edge = { from, to: payee.name };
                  store.dispatch(connect, { edge }, { label: `Add reward ${node}` });
                  onAdded(node);
                  onClose();
                }}
              >
                {node}
              </Command.Item>
            ))}
          </Command.Group>
        ) : null}
        {own.length > 0 ? <Group heading="Your own" choices={own} onSelect={add} /> : null}
        <Group heading="Built in, models and services" choices={built} onSelect={add} />
      </Command.List>
    </Command>
  );
}

interface GroupProps {
  heading: string;
  choices: readonly ScorerChoice[];
  onSelect: (choice: ScorerChoice) => void;
}

function Group({ heading, choices, onSelect }: GroupProps) {
  return (
    <Command.Group heading={heading} className={GROUP}>
      {choices.map((choice) => (
        <Command.Item
          key={`${choice.kind.kind} ${choice.name}`}
          value={`${choice.title} ${choice.name} ${choice.kind.title} ${choice.help}`}
          className="flex cursor-default items-start gap-2 rounded-2 px-2 py-1.5 text-sm data-[selected=true]:bg-hover"
          style={{ "--node-color": kindColor(choice.kind) } as React.CSSProperties}
          onSelect={() => onSelect(choice)}
        >
          <span className="loop-node-icon mt-0.5 size-5 shrink-0">
            <KindIcon name={choice.kind.icon} size={13} />
          </span>
          <span className="min-w-0">
            <span className="block">
              {choice.title}{" "}
              <span className="text-muted text-xs">{choice.kind.title.toLowerCase()}</span>
            </span>
            <span className="block text-muted text-xs">
              <RichText text={choice.help} />
            </span>
          </span>
        </Command.Item>
      ))}
    </Command.Group>
  );
}
