import { useMemo, useState } from "react";
import type { Json } from "@/api/types";
import { ofOtherModes } from "@/catalog/modes";
import type { Choice, Field } from "@/catalog/schema";
import { pickAt } from "@/document/picks";
import type { CardValue } from "@/graph/cardValues";
import type { Path } from "@/lib/paths";
import { setField } from "@/state/commands/fields";
import { useDocument, useMode, useOpenLoop } from "@/state/document/context";
import { focusField, select } from "@/state/selection";
import { useVisits } from "@/state/useVisits";
import { Combobox } from "@/ui/Combobox";
import { Menu, MenuChoice } from "@/ui/Menu";
import { ValueField } from "./ValueField";

interface CardTextProps {
  node: string;
  value: CardValue;
  isReachable: boolean;
  onEditing?: (isEditing: boolean) => void;
}

const LOOK = "card-value-text nodrag";
const FEW = 9;

export function CardText({ node, value, isReachable, onEditing }: CardTextProps) {
  const { store } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const [isEditing, setEditing] = useState(false);
  const [isPicking, setPicking] = useState(false);
  const { label, path, field, text } = value;
  const name = `${label} of ${node}`;
  const choices = isReadonly ? null : choicesOf(field);
  const isPicked = useIsPicked(node, path) && !isReadonly && !choices;
  const typed = isReadonly || isPicked ? null : typedField(value);
  const tabIndex = isReachable ? 0 : -1;

  const edit = (edits: boolean) => {
    setEditing(edits);
    onEditing?.(edits);
  };
  const write = (next: Json | undefined) => {
    edit(false);
    if (next === value.value) return;
    store.dispatch(setField, { node, path, value: next }, { label: `Change ${label} of ${node}` });
  };
  const open = () => {
    select({ nodes: [node] });
    if (isPicked) setPicking(true);
    else if (typed) edit(true);
    else focusField(node, path.join("."));
  };
  const button = (
    <button
      type="button"
      className={LOOK}
      tabIndex={tabIndex}
      aria-label={`${name}: ${text || "not set"}`}
      title={isPicked || typed || choices ? text : `${text}\nOpens the form`}
      onClick={(event) => {
        event.stopPropagation();
        if (!choices) open();
      }}
    >
      {text || "not set"}
    </button>
  );
  if (isEditing && typed) {
    return (
      <ValueField
        label={name}
        field={typed}
        value={value.value}
        onWrite={write}
        onCancel={() => edit(false)}
      />
    );
  }
  if (isPicking && isPicked) {
    return <CardPick node={node} value={value} className={LOOK} tabIndex={tabIndex} />;
  }
  if (!choices) return button;
  return (
    <Menu trigger={button} align="end">
      {choices.map((choice) => (
        <MenuChoice
          key={choice.label}
          isChosen={choice.label === text || choice.value === value.value}
          onSelect={() => write(choice.value)}
        >
          {choice.label}
        </MenuChoice>
      ))}
    </Menu>
  );
}

function choicesOf(field: Field | null): readonly Choice[] | null {
  if (field?.shape === "flag") {
    return [
      { value: true, label: "yes" },
      { value: false, label: "no" },
    ];
  }
  const isFew = field?.shape === "choice" && field.choices.length <= FEW && !field.choosesFrom;
  return isFew ? field.choices : null;
}

/** Null where it is not written on one line: text of several lines and code have the form. */
function typedField({ field, value }: CardValue) {
  if (field?.shape === "number") return field;
  if (field?.shape !== "text" || field.widget === "code" || field.widget === "text") return null;
  return typeof value === "string" && value.includes("\n") ? null : field;
}

interface CardPickProps {
  node: string;
  value: CardValue;
  className: string;
  tabIndex: number;
}

function CardPick({ node, value, className, tabIndex }: CardPickProps) {
  const { label, path, text } = value;
  const { catalog, store } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const mode = useMode();
  const visitsOf = useVisits();
  const hidden = ofOtherModes(mode, document.nodes[node]?.kind).algorithms;
  const picked = pickAt(catalog, document, node, path, hidden);
  if (!picked) return null;
  const choose = (chosen: string) => {
    const change = { node, ...picked.write(chosen, visitsOf) };
    store.dispatch(setField, change, { label: `Change ${label} of ${node}` });
  };
  return (
    <Combobox
      label={`${label} of ${node}`}
      value={typeof value.value === "string" ? value.value : text}
      options={picked.options}
      look={{ className, text, tabIndex }}
      startsOpen
      onChange={choose}
      {...(picked.isOpen ? { onType: choose } : {})}
    />
  );
}

function useIsPicked(node: string, path: Path): boolean {
  const { catalog, store } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[node]);
  const place = path.join(".");
  // biome-ignore lint/correctness/useExhaustiveDependencies: `data` and `place` are what is read
  return useMemo(
    () => pickAt(catalog, store.getState().document, node, path, []) !== null,
    [catalog, store, node, data, place],
  );
}
