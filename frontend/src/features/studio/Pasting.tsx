import { useState } from "react";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { EXAMPLE, readPasted } from "./pasted";

interface PastingProps {
  text: string;
  onChange: (text: string) => void;
}

/** A place to paste rows into. */
export function Pasting({ text, onChange }: PastingProps) {
  const [isOpen, setOpen] = useState(false);
  const read = readPasted(text);
  const count = "rows" in read ? read.rows.length : 0;
  return (
    <>
      <Button size="small" onClick={() => setOpen(true)}>
        {count === 0 ? "Paste rows…" : `Change the ${count} rows…`}
      </Button>
      <Dialog
        title="Rows to score"
        description="A JSON list, one JSON object per line, or one completion per line. A reward reads further columns by name; rows of one group are compared with each other."
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        width="max-w-2xl"
        footer={
          <>
            <span className="flex-1 text-muted text-xs" role="status">
              {"problem" in read ? read.problem : `${count} rows`}
            </span>
            <Button onClick={() => onChange(text + EXAMPLE)}>Add an example</Button>
            <Button look="primary" onClick={() => setOpen(false)}>
              Done
            </Button>
          </>
        }
      >
        <textarea
          aria-label="Rows to score"
          className="h-72 w-full rounded-2 border border-line bg-surface p-2 font-mono text-xs focus:border-focus focus:outline-2 focus:outline-focus/40"
          placeholder={EXAMPLE}
          value={text}
          onChange={(event) => onChange(event.target.value)}
        />
      </Dialog>
    </>
  );
}
