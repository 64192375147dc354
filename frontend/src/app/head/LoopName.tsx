import { useEffect, useState } from "react";
import { setValue } from "@/document/commands/setValue";
import { useDocument, useOpenLoop } from "@/document/context";
import { isLoopName, LOOP_NAMES } from "@/document/names";

/** The loop's name, changed in place. */
export function LoopName() {
  const { store } = useOpenLoop();
  const name = useDocument((state) => state.document.name);
  const isReadonly = useDocument((state) => state.isReadonly);
  const [typed, setTyped] = useState(name);
  useEffect(() => setTyped(name), [name]);
  const isWrong = !isLoopName(typed);
  const take = () => {
    if (isWrong) setTyped(name);
    else if (typed !== name)
      store
        .getState()
        .dispatch(setValue, { path: ["name"], value: typed }, { label: "Rename loop" });
  };
  return (
    <input
      aria-label="Name of the loop"
      aria-invalid={isWrong || undefined}
      title={isWrong ? LOOP_NAMES : name}
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
