/**
 * Keeps the document of a watched run at the values that the run uses:
 *
 *     loop as started  <  edits the run told of  <  sent  <  typed and not sent
 */
import { replaceDocument } from "@/document/commands/replaceDocument";
import type { DocumentStore } from "@/document/store";
import type { LiveRun } from "@/live/LiveRun";
import { type Changes, useRunEdits } from "@/session/runEdits";
import { withEdits } from "./withEdits";

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
