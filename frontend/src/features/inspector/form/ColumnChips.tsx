import { columnsAt } from "@/document/columnsAt";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { useForm } from "./FormContext";

const MAX = 12;

interface ColumnChipsProps {
  /** Id of the text field that a column is put into. */
  field: string;
  text: string;
  onChange: (text: string) => void;
}

/** Columns of the rows that reach the node: one that is pressed is put where the cursor is. */
export function ColumnChips({ field, text, onChange }: ColumnChipsProps) {
  const { catalog } = useOpenLoop();
  const { scope } = useForm();
  const node = scope[0] === "nodes" ? String(scope[1]) : "";
  const names = useDocument((state) => columnsAt(catalog, state.document, node).join(" "));
  if (names === "") return null;
  const insert = (name: string) => {
    const box = document.getElementById(field);
    const written = `{{ ${name} }}`;
    const at = box instanceof HTMLTextAreaElement ? box.selectionStart : text.length;
    const end = box instanceof HTMLTextAreaElement ? box.selectionEnd : text.length;
    onChange(text.slice(0, at) + written + text.slice(end));
    requestAnimationFrame(() => {
      if (!(box instanceof HTMLTextAreaElement)) return;
      box.focus();
      box.setSelectionRange(at + written.length, at + written.length);
    });
  };
  return (
    <fieldset className="mt-1 flex flex-wrap gap-1">
      <legend className="sr-only">Insert a column</legend>
      {names
        .split(" ")
        .slice(0, MAX)
        .map((name) => (
          <button
            key={name}
            type="button"
            aria-label={`Insert ${name}`}
            className="rounded-full border border-line bg-sunken px-2 font-mono text-2xs leading-5 hover:border-line-strong"
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => insert(name)}
          >
            {name}
          </button>
        ))}
    </fieldset>
  );
}
