import { ChevronRight } from "lucide-react";
import { useState } from "react";
import type { Term } from "@/api/types";
import { classes } from "@/ui/classes";
import { formatAmount, type Named, piecesOf, treeOf } from "./lines";

/** A number, its formula, and the values and sources of what the formula names. */
export function TermView({ title, term }: { title: string; term: Term }) {
  const [first] = term.lines;
  const isPlain = first?.formula == null;
  return (
    <>
      <div className="border-line border-b px-3 py-2">
        <div className="flex items-baseline gap-3">
          <b className="min-w-0 flex-1">{title}</b>
          <b className="tabular whitespace-nowrap">{formatAmount(term.value, term.unit)}</b>
        </div>
        {isPlain ? null : <Formula text={first.formula ?? ""} className="mt-1" />}
      </div>
      <ul tabIndex={-1} className="min-h-0 flex-1 overflow-y-auto px-3 py-1.5">
        {treeOf(term.lines).map((named) => (
          <NamedValue key={named.line.name} named={named} />
        ))}
      </ul>
      {term.source || first?.source ? (
        <p className="border-line border-t px-3 py-2 text-muted text-xs">
          From: {term.source ?? first?.source}
        </p>
      ) : null}
    </>
  );
}

function NamedValue({ named: { line, inside } }: { named: Named }) {
  const [isOpen, setOpen] = useState(false);
  const name = (
    <span className="min-w-0 flex-1 break-words">
      {line.name}
      {line.source ? <span className="block text-faint text-xs">{line.source}</span> : null}
    </span>
  );
  const value = (
    <span className="tabular whitespace-nowrap">{formatAmount(line.value, line.unit)}</span>
  );
  if (line.formula === null)
    return (
      <li className="flex items-baseline gap-3 py-0.5 pl-3.5">
        {name}
        {value}
      </li>
    );
  return (
    <li className="py-0.5">
      <button
        type="button"
        aria-expanded={isOpen}
        className="flex w-full items-baseline gap-3 rounded-1 text-left hover:bg-hover"
        onClick={() => setOpen(!isOpen)}
      >
        <ChevronRight
          size={12}
          aria-hidden="true"
          className={classes(
            "-mr-2 shrink-0 self-center text-muted transition-transform",
            isOpen && "rotate-90",
          )}
        />
        {name}
        {value}
      </button>
      {isOpen ? (
        <div className="mt-0.5 ml-1.5 border-line border-l pl-2">
          <Formula text={line.formula} />
          <ul>
            {inside.map((one) => (
              <NamedValue key={one.line.name} named={one} />
            ))}
          </ul>
        </div>
      ) : null}
    </li>
  );
}

function Formula({ text, className = "" }: { text: string; className?: string }) {
  return (
    <p className={`text-muted text-xs leading-5 ${className}`}>
      ={" "}
      {piecesOf(text).map((piece, place) => (
        <span key={place} className={piece.isSign ? "text-faint" : "text-text"}>
          {piece.text}
        </span>
      ))}
    </p>
  );
}
