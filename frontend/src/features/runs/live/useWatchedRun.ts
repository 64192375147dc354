/** Opens a run: its loop with what was changed since it started, its history, and its stream. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { check, fetchRunSpec } from "@/api/routes";
import { fromSpec } from "@/document/convert";
import { findPlace, readDocumentPath } from "@/document/place";
import { EMPTY_DOCUMENT, type LoopDocument } from "@/document/types";
import { withPlaces } from "@/graph/layout";
import { runLayout } from "@/graph/runLayout";
import { type Path, readPath } from "@/lib/paths";
import { LiveRun } from "@/live/LiveRun";
import { RunConnection } from "@/live/RunConnection";
import { setValue } from "@/state/commands/fields";
import { replaceDocument } from "@/state/commands/replaceDocument";
import type { OpenLoop } from "@/state/document/context";
import { createDocumentStore, type DocumentStore } from "@/state/document/store";
import { useServerCatalog } from "@/state/queries";
import { type Changes, useRunEdits } from "@/state/runEdits";
import { clearSelection } from "@/state/selection";
import { createSyncStore } from "@/state/sync/state";

interface WatchedRun {
  open: OpenLoop;
  live: LiveRun;
  connection: RunConnection;
}

export function useWatchedRun(id: string) {
  const catalog = useServerCatalog();
  const spec = useQuery({
    queryKey: ["run", id, "spec"],
    queryFn: () => fetchRunSpec(id),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const [watched, setWatched] = useState<WatchedRun | null>(null);

  useEffect(() => {
    if (!catalog.data || !spec.data) return;
    const { yaml, spec: loop } = spec.data;
    const store = createDocumentStore({
      document: loop
        ? runLayout(catalog.data, withPlaces(catalog.data, fromSpec(loop)))
        : EMPTY_DOCUMENT,
      text: yaml,
      isReadonly: true,
    });
    const syncStore = createSyncStore("");
    const checking = new AbortController();
    check({ yaml }, checking.signal).then(
      (answer) =>
        syncStore.setState({
          check: { ...answer, report: { ok: true, diagnostics: [] } },
          checkStatus: "done",
        }),
      () => {
        // The estimate of a run is an extra.
      },
    );
    const live = new LiveRun(id);
    const connection = new RunConnection(live);
    clearSelection();
    useRunEdits.getState().clear();
    const unfollow = followEdits(live, store);
    connection.start();
    setWatched({
      open: { loopId: null, runId: id, store, syncStore, sync: null, catalog: catalog.data },
      live,
      connection,
    });
    return () => {
      checking.abort();
      unfollow();
      connection.stop();
      live.close();
    };
  }, [catalog.data, spec.data, id]);

  return {
    watched,
    error: catalog.error ?? spec.error,
    retry: () => {
      if (catalog.isError) void catalog.refetch();
      if (spec.isError) void spec.refetch();
    },
  };
}

/**
 * Keeps the document of a watched run at the values that the run uses:
 *
 *     loop as started  <  edits the run told of  <  sent  <  typed and not sent
 */
export function followEdits(live: LiveRun, store: DocumentStore): () => void {
  const started = store.getState().document;
  let { edits, refusedEdits } = live.state;
  let used: Changes = {};

  const show = () => {
    const { sent, changes } = useRunEdits.getState();
    const document = withEdits(started, { ...used, ...sent, ...changes });
    store.dispatch(replaceDocument, { document }, { isHotEdit: true });
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

function hasHolder(document: LoopDocument, path: Path): boolean {
  if (path[0] !== "nodes" && path[0] !== "edges") return true;
  const place = findPlace(document, path);
  return readPath(place.root, place.path.slice(0, 2)) !== undefined;
}
