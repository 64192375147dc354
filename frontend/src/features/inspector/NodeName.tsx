import { useEffect, useState } from "react";
import { renameNode } from "@/document/commands/renameNode";
import { useDocument, useOpenLoop } from "@/document/context";
import { nameProblem } from "@/document/names";
import { useSelection } from "@/session/selection";

/** The node's name; what mentions it follows. */
export function NodeName({ id }: { id: string }) {
  const { catalog, store } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const [name, setName] = useState(id);
  const taken = () => new Set(Object.keys(store.getState().document.nodes));
  const problem = name === id ? null : nameProblem(name, taken(), id);

  useEffect(() => setName(id), [id]);

  const take = () => {
    if (name === id) return;
    if (problem) {
      setName(id);
      return;
    }
    store.getState().dispatch(renameNode, { catalog, from: id, to: name });
    useSelection.getState().select({ nodes: [name] });
  };
  return (
    <>
      <input
        aria-label="Name of the node"
        aria-invalid={problem !== null || undefined}
        className="-mx-1 w-full truncate rounded-1 border border-transparent bg-transparent px-1 font-semibold text-sm hover:border-line focus:border-focus"
        value={name}
        title={id}
        disabled={isReadonly}
        spellCheck={false}
        onChange={(event) => setName(event.target.value)}
        onBlur={take}
        onKeyDown={(event) => {
          if (event.key === "Enter") event.currentTarget.blur();
          if (event.key === "Escape") setName(id);
        }}
      />
      {problem ? <p className="text-error text-xs">{problem}</p> : null}
    </>
  );
}
