import { useEffect, useState } from "react";
import { toast } from "sonner";
import { loopNameNear, loopNameProblem } from "@/document/names";
import { setValue } from "@/state/commands/fields";
import { useDocument, useOpenLoop } from "@/state/document/context";

/** The loop's name, changed in place. */
export function LoopName() {
  const { store } = useOpenLoop();
  const name = useDocument((state) => state.document.name);
  const isReadonly = useDocument((state) => state.isReadonly);
  const [typed, setTyped] = useState(name);
  useEffect(() => setTyped(name), [name]);
  const problem = loopNameProblem(typed);
  const rename = (value: string) =>
    store.getState().dispatch(setValue, { path: ["name"], value }, { label: "Rename loop" });
  const take = () => {
    if (problem === null) {
      if (typed !== name) rename(typed);
      return;
    }
    setTyped(name);
    const near = loopNameNear(typed);
    toast.error(problem, {
      id: "loop-name",
      duration: 8000,
      description: `It is still called ${name}.`,
      ...(near ? { action: { label: `Call it ${near}`, onClick: () => rename(near) } } : {}),
    });
  };
  return (
    <input
      aria-label="Name of the loop"
      aria-invalid={problem !== null || undefined}
      title={problem ?? name}
      className="h-7 min-w-12 max-w-72 truncate rounded-1 border border-transparent bg-transparent px-1.5 font-semibold text-sm field-sizing-content hover:border-line focus:border-focus aria-invalid:text-error"
      value={typed}
      disabled={isReadonly}
      spellCheck={false}
      onChange={(event) => setTyped(event.target.value)}
      onBlur={take}
      onKeyDown={(event) => {
        if (event.key === "Enter") event.currentTarget.blur();
        if (event.key === "Escape") setTyped(name);
      }}
    />
  );
}
