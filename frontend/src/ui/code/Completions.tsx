import { type RefObject, useLayoutEffect, useRef } from "react";
import { Floating } from "../Floating";
import type { Option } from "./completions";
import type { CompletionList } from "./useCompletions";

interface CompletionsProps {
  completions: CompletionList;
  anchor: RefObject<HTMLElement | null>;
}

/** What may be meant, below the cursor. */
export function Completions({ completions, anchor }: CompletionsProps) {
  const { open, id, take } = completions;
  if (!open || !anchor.current) return null;
  const help = open.options[open.chosen]?.help;
  return (
    <Floating
      anchor={anchor.current}
      side="bottom"
      align="start"
      className="code-offer"
      style={{ marginLeft: `calc(${open.from - open.to}ch - 13px)` }}
    >
      <div role="listbox" id={id} aria-label="Completions" className="code-options">
        {open.options.map((option, at) => (
          <OptionRow
            key={option.label}
            id={`${id}-${at}`}
            option={option}
            isChosen={at === open.chosen}
            onTake={() => take(option)}
          />
        ))}
      </div>
      {help ? <p className="code-help">{help}</p> : null}
    </Floating>
  );
}

interface OptionRowProps {
  id: string;
  option: Option;
  isChosen: boolean;
  onTake: () => void;
}

function OptionRow({ id, option, isChosen, onTake }: OptionRowProps) {
  const row = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (isChosen) row.current?.scrollIntoView({ block: "nearest" });
  }, [isChosen]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are the text's, which names the chosen one
    <div
      ref={row}
      id={id}
      role="option"
      tabIndex={-1}
      aria-selected={isChosen}
      className="code-option"
      onPointerDown={(event) => event.preventDefault()}
      onClick={onTake}
    >
      <span>{option.label}</span>
      <span className="code-detail">{option.detail}</span>
    </div>
  );
}
