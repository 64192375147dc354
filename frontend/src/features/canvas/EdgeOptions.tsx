import { Fragment, useState } from "react";
import { edgeIndex, portRef } from "@/document/edges";
import { type EdgeKind, type EdgeOption, edgeOptions, learningName } from "@/graph/edgeKinds";
import { setEdgeOption } from "@/state/commands/edges";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { ValueField } from "./ValueField";

interface EdgeOptionsProps {
  id: string;
  kind: EdgeKind;
  isSelected: boolean;
}

/** The options of an edge; a number is changed where it is read. What counts for learning is offered though it is not set. */
export function EdgeOptions({ id, kind, isSelected }: EdgeOptionsProps) {
  const { catalog } = useOpenLoop();
  const edge = useDocument((state) => state.document.edges[edgeIndex(state.document, id)]);
  const isReadonly = useDocument((state) => state.isReadonly);
  if (!edge) return null;
  const name = learningName(edge, kind);
  const called = typeof edge.id === "string" ? edge.id : portRef(edge.to).port;
  return (
    <>
      {name}
      {edgeOptions(catalog, edge, isSelected && kind === "learning" && !isReadonly).map(
        (option, place) => (
          <Fragment key={option.name}>
            {place > 0 || name !== "" ? " · " : ""}
            {option.field.shape === "number" && !isReadonly ? (
              <NumberOption id={id} option={option} called={called} />
            ) : (
              option.text
            )}
          </Fragment>
        ),
      )}
    </>
  );
}

interface NumberOptionProps {
  id: string;
  option: EdgeOption;
  called: string;
}

function NumberOption({ id, option, called }: NumberOptionProps) {
  const { store } = useOpenLoop();
  const [isEditing, setEditing] = useState(false);
  const { name, field, value, text } = option;
  if (!isEditing || field.shape !== "number") {
    return (
      <button
        type="button"
        className="card-value-text nodrag nopan"
        tabIndex={-1}
        aria-label={`${name} of ${id}: ${text}`}
        title="Change it here"
        onClick={(event) => {
          event.stopPropagation();
          useSelection.getState().select({ nodes: [], edges: [id] });
          setEditing(true);
        }}
      >
        {text}
      </button>
    );
  }
  return (
    <ValueField
      label={`${name} of ${id}`}
      field={field}
      value={value}
      onWrite={(next) => {
        setEditing(false);
        if (next === value) return;
        const change = { key: id, path: [name], value: next };
        store.getState().dispatch(setEdgeOption, change, { label: `Change ${name} of ${called}` });
      }}
      onCancel={() => setEditing(false)}
    />
  );
}
