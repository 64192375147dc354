/**
 * Keeps the document of a watched run at the values that the run uses:
 *
 *     loop as started  <  edits the run told of  <  sent  <  typed and not sent
 */
import { replaceDocument } from "@/document/commands/replaceDocument";
import { setValue } from "@/document/commands/setValue";
import { findPlace, readDocumentPath } from "@/document/place";
import type { DocumentStore } from "@/document/store";
import type { LoopDocument } from "@/document/types";
import { type Path, readPath } from "@/lib/paths";
import type { LiveRun } from "@/live/LiveRun";
import { type Changes, useRunEdits } from "@/session/runEdits";

export function followEdits(live: LiveRun, store: DocumentStore): () => void {
  const started = store.getState().document;
  let { edits, refusedEdits } = live.state;
  let used: Changes = {};

  const show = () => {
    const { sent, changes } = useRunEdits.getState();
    const document = withEdits(started, { ...used, ...sent, ...changes });
    store.getState().dispatch(replaceDocument, { document }, { isHotEdit: true });
  };
  const unwatch = live.watch("lines", () => {
    const { state } = live;
    if (state.edits === edits && state.refusedEdits === refusedEdits) return;
    if (state.refusedEdits !== refusedEdits) useRunEdits.getState().refuse();
    ({ edits, refusedEdits } = state);
    used = Object.assign({}, ...edits.map((edit) => edit.changes));
    useRunEdits.getState().confirm(used);
    show();
  });
  // What is typed is in the document already; what was sent or given up is not, or no longer.
  const unsubscribe = useRunEdits.subscribe((now, before) => {
    const isDiscarded = Object.keys(now.changes).length === 0 && now.changes !== before.changes;
    if (now.sent !== before.sent || isDiscarded) show();
  });
  return () => {
    unwatch();
    unsubscribe();
  };
}

/** A loop with values by path over it, as a run has them. Pure. */
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
