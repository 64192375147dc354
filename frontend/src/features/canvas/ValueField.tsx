import { useEffect, useId, useRef, useState } from "react";
import type { Json } from "@/api/types";
import { numberProblem, readNumber } from "@/catalog/numberText";
import type { Field } from "@/catalog/schema";

interface ValueFieldProps {
  label: string;
  field: Extract<Field, { shape: "number" | "text" }>;
  value: Json | undefined;
  onWrite: (value: Json | undefined) => void;
  onCancel: () => void;
}

export function ValueField({ label, field, value, onWrite, onCancel }: ValueFieldProps) {
  const [text, setText] = useState(value === undefined ? "" : String(value));
  const input = useRef<HTMLInputElement>(null);
  const isDone = useRef(false);
  const problemId = useId();
  const problem = field.shape === "number" ? numberProblem(field, text) : null;
  useEffect(() => {
    input.current?.focus();
    input.current?.select();
  }, []);

  const leave = (then: () => void) => {
    if (isDone.current) return;
    isDone.current = true;
    then();
  };
  const keep = () => {
    if (field.shape === "number") onWrite(readNumber(field, text));
    else onWrite(text === "" ? undefined : text);
  };

  return (
    <>
      <input
        ref={input}
        className="card-value-field nodrag nopan tabular"
        aria-label={label}
        aria-invalid={problem !== null || undefined}
        aria-describedby={problem === null ? undefined : problemId}
        autoComplete="off"
        spellCheck={false}
        value={text}
        placeholder={field.fallback === undefined ? "" : String(field.fallback)}
        onChange={(event) => setText(event.target.value)}
        onBlur={() => leave(problem === null ? keep : onCancel)}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === "Enter" && problem === null) leave(keep);
          if (event.key === "Escape") leave(onCancel);
        }}
      />
      {problem === null ? null : (
        <span
          id={problemId}
          role="alert"
          className="card-value-problem absolute top-full right-0 z-3 max-w-53 whitespace-normal rounded-1 border border-line bg-raised px-2 py-1 text-error shadow-2"
        >
          {problem}
        </span>
      )}
    </>
  );
}
