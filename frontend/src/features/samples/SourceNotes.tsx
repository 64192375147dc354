import { Info } from "lucide-react";
import type { Catalog } from "@/api/types";
import type { LoopDocument } from "@/document/types";
import { useCatalog, useDocument } from "@/state/document/context";

export function SourceNotes() {
  return useSourceNotes().map((note) => (
    <p key={note} className="flex items-start gap-2 px-3 py-1 font-sans text-muted text-xs">
      <Info size={14} className="mt-px shrink-0" aria-hidden="true" />
      {note}
    </p>
  ));
}

/** What the author says of where the rows come from, each thing once: how answers are written, say. */
function useSourceNotes(): string[] {
  const catalog = useCatalog();
  const notes = useDocument((state) => sourceNotes(catalog, state.document).join("\n\n"));
  return notes === "" ? [] : notes.split("\n\n");
}

function sourceNotes(catalog: Catalog, { nodes }: LoopDocument): string[] {
  const found = Object.values(nodes)
    .filter(({ kind }) => catalog.kinds[kind]?.inputs.length === 0)
    .map(({ note }) => (typeof note === "string" ? note.trim() : ""));
  return [...new Set(found)].filter((note) => note !== "");
}
