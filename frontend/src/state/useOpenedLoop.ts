/**
 * The loop that a page shows. It is opened once and kept for all pages of the loop: they show one document with one
 * history, which is never older than what was last done in any of them.
 */

import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { useSearch } from "wouter";
import { ApiError } from "@/api/client";
import * as routes from "@/api/routes";
import type { Catalog, Loop } from "@/api/types";
import { fromSpec, mendDocument } from "@/document/convert";
import { keepIdentities, withIdentities } from "@/document/identities";
import { EMPTY_DOCUMENT, type LoopDocument } from "@/document/types";
import { withPlaces } from "@/graph/layout";
import { setPreferences } from "@/state/preferences";
import { clearSelection, dropMissing } from "@/state/selection";
import type { OpenLoop } from "./document/context";
import { createDocumentStore } from "./document/store";
import { catalogQuery } from "./queries";
import { browserDrafts, type Draft } from "./sync/drafts";
import { DELAYS, LoopSync, type PlaceNodes } from "./sync/LoopSync";
import { NOT_SAVED } from "./sync/state";
import { forgetUnsaved, isUnsaved, presetOf } from "./unsaved";

/** How long a loop stays open that no page shows; after that it is opened from the server again. */
const KEPT_OPEN = 60 * 60 * 1000;

const openKey = (id: string) => ["opened-loop", id] as const;

export function useOpenedLoop(id: string) {
  const client = useQueryClient();
  const preset = presetOf(useSearch());
  const opened = useQuery({
    queryKey: openKey(id),
    queryFn: () => open(client, id, preset),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: KEPT_OPEN,
    structuralSharing: false,
  });
  const shown = opened.data ?? null;

  useEffect(() => {
    if (shown === null) return;
    clearSelection();
    const unwatch = shown.store.subscribe(({ document }, before) => {
      if (document !== before.document) dropMissing(document);
    });
    const unsubscribe = whenSaved(shown, () => setPreferences({ lastLoop: id }));
    void shown.sync?.visit().then((isThere) => {
      if (isThere) return;
      shown.sync?.stop();
      void client.resetQueries({ queryKey: openKey(id) });
    });
    return () => {
      unwatch();
      unsubscribe();
    };
  }, [shown, id, client]);

  return { open: shown, error: opened.error, retry: () => void opened.refetch() };
}

export function closeLoop(client: QueryClient, id: string): void {
  client.removeQueries({ queryKey: openKey(id) });
}

/** Opens a loop: from the server, with unsaved work of this browser on top. It is kept in step until it is closed. */
async function open(client: QueryClient, id: string, preset: string | null): Promise<OpenLoop> {
  const [catalog, loop, draft] = await Promise.all([
    client.ensureQueryData(catalogQuery),
    fetchLoop(id, preset),
    browserDrafts.read(id),
  ]);
  const made = openLoop(catalog, loop, draft ?? null);
  const unsubscribe = whenSaved(made, () => forgetUnsaved(id));
  const unlist = made.syncStore.subscribe((state, before) => {
    if (state.revision !== before.revision) void client.invalidateQueries({ queryKey: ["loops"] });
  });
  const unwatch = client.getQueryCache().subscribe(({ type, query }) => {
    if (type !== "removed" || query.queryKey[0] !== "opened-loop" || query.queryKey[1] !== id)
      return;
    unsubscribe();
    unlist();
    unwatch();
    made.sync?.stop();
  });
  return made;
}

/** The loop of this id; a preset that nobody has changed yet where there is none. */
async function fetchLoop(id: string, preset: string | null): Promise<Loop> {
  if (preset === null || !isUnsaved(id)) {
    try {
      return await routes.fetchLoop(id);
    } catch (error) {
      if (preset === null || !(error instanceof ApiError) || error.status !== 404) throw error;
    }
  }
  const { yaml, spec } = await routes.fetchLoopPreset(preset);
  const name = spec ? fromSpec(spec).name : preset;
  const now = new Date().toISOString();
  const revision = NOT_SAVED;
  return { id, name, yaml, spec, version: 0, revision, created_at: now, updated_at: now };
}

function whenSaved({ syncStore }: OpenLoop, then: () => void): () => void {
  if (syncStore.getState().revision !== NOT_SAVED) {
    then();
    return () => {};
  }
  return syncStore.subscribe((state, before) => {
    if (before.revision === NOT_SAVED && state.revision !== NOT_SAVED) then();
  });
}

function savedDocument(loop: Loop): LoopDocument {
  return loop.spec ? fromSpec(loop.spec) : { ...EMPTY_DOCUMENT, name: loop.name };
}

function openLoop(catalog: Catalog, loop: Loop, draft: Draft | null): OpenLoop {
  const place: PlaceNodes = (document, before) =>
    withIdentities(catalog, withPlaces(catalog, document, before.layout), before.identities);
  const document = place(
    draft ? mendDocument(draft.document) : savedDocument(loop),
    EMPTY_DOCUMENT,
  );
  const store = createDocumentStore({
    document,
    text: draft?.text ?? loop.yaml,
    settle: keepIdentities(catalog),
  });
  const sync = new LoopSync(loop, store, routes, browserDrafts, DELAYS, place);
  if (draft) sync.restore(draft);
  return { loopId: loop.id, runId: null, store, syncStore: sync.store, sync, catalog };
}
