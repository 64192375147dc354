import { Info } from "lucide-react";
import { useSourceNotes } from "./useSourceNotes";

/** What one has to know of the rows to read them. */
export function SourceNotes() {
  return useSourceNotes().map((note) => (
    <p key={note} className="flex items-start gap-2 px-3 py-1 font-sans text-muted text-xs">
      <Info size={14} className="mt-px shrink-0" aria-hidden="true" />
      {note}
    </p>
  ));
}
