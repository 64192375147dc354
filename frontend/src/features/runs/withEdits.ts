/** A loop with values by path over it, as a run has them. Pure. */
import { setValue } from "@/document/commands/setValue";
import { findPlace, readDocumentPath } from "@/document/place";
import type { LoopDocument } from "@/document/types";
import { type Path, readPath } from "@/lib/paths";
import type { Changes } from "@/session/runEdits";

export function withEdits(document: LoopDocument, changes: Changes): LoopDocument {
  let edited = document;
  for (const [text, value] of Object.entries(changes)) {
    const path = readDocumentPath(edited, text);
    if (hasHolder(document, path)) edited = setValue(edited, { path, value });
  }
  return edited;
}

/** The node or edge that a path leads into is there. */
function hasHolder(document: LoopDocument, path: Path): boolean {
  if (path[0] !== "nodes" && path[0] !== "edges") return true;
  const place = findPlace(document, path);
  return readPath(place.root, place.path.slice(0, 2)) !== undefined;
}
