import { useState } from "react";
import type { Json } from "@/api/types";
import type { Choice, Field } from "@/catalog/schema";
import { setField } from "@/document/commands/setField";
import { useDocument, useOpenLoop } from "@/document/context";
import type { TellingValue } from "@/document/telling";
import { useSelection } from "@/session/selection";
import { Menu, MenuChoice } from "@/ui/Menu";
import { ValueField } from "./ValueField";

interface CardValueProps {
  node: string;
  value: TellingValue;
  /** Whether the Tab key leads to it. */
  isReachable: boolean;
}

/** One value of a card: a click or Enter turns it into a field, Escape takes back, leaving it keeps. */
export function CardValue({ node, value, isReachable }: CardValueProps) {
  const { store } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const [isEditing, setEditing] = useState(false);
  const { label, path, field, text } = value;
  const name = `${label} of ${node}`;
  const choices = isReadonly ? null : choicesOf(field);
  const typed = isReadonly ? null : typedField(value);

  const write = (next: Json | undefined) => {
    setEditing(false);
    if (next === value.value) return;
    store
      .getState()
      .dispatch(setField, { node, path, value: next }, { label: `Change ${label} of ${node}` });
  };
  const open = () => {
    useSelection.getState().select({ nodes: [node] });
    if (typed) setEditing(true);
    else useSelection.getState().focusField(node, path.join("."));
  };
  const button = (
    <button
      type="button"
      className="card-value-text nodrag"
      tabIndex={isReachable ? 0 : -1}
      aria-label={`${name}: ${text || "not set"}`}
      title={typed || choices ? text : `${text}\nOpens the form`}
      onClick={(event) => {
        event.stopPropagation();
        if (!choices) open();
      }}
    >
      {text || "not set"}
    </button>
  );

  return (
    <div className="card-value" data-editing={isEditing || undefined}>
      <span className="card-value-label">{label}</span>
      {isEditing && typed ? (
        <ValueField
          label={name}
          field={typed}
          value={value.value}
          onWrite={write}
          onCancel={() => setEditing(false)}
        />
      ) : choices ? (
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
      ) : (
        button
      )}
    </div>
  );
}

function choicesOf(field: Field | null): readonly Choice[] | null {
  if (field?.shape === "flag") {
    return [
      { value: true, label: "yes" },
      { value: false, label: "no" },
    ];
  }
  return field?.shape === "choice" ? field.choices : null;
}

/** Null where it is not written on one line: text of several lines and code have the form. */
function typedField({ field, value }: TellingValue) {
  if (field?.shape === "number") return field;
  if (field?.shape !== "text" || field.widget === "code" || field.widget === "text") return null;
  return typeof value === "string" && value.includes("\n") ? null : field;
}
