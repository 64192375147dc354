/** Opens a loop: from the server, with unsaved work of this browser on top, and keeps it in step. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useSearch } from "wouter";
import { ApiError } from "@/api/client";
import * as routes from "@/api/routes";
import type { Catalog, Loop } from "@/api/types";
import type { OpenLoop } from "@/document/context";
import { fromSpec, mendDocument } from "@/document/convert";
import { keepIdentities, withIdentities } from "@/document/identities";
import { fetchArranging, fetchPlacing, withPlaces } from "@/document/layout";
import { createDocumentStore } from "@/document/store";
import type { SyncApi } from "@/document/sync/api";
import { browserDrafts, type Draft } from "@/document/sync/drafts";
import { DELAYS, LoopSync } from "@/document/sync/LoopSync";
import type { PlaceNodes } from "@/document/sync/Reader";
import { NOT_SAVED } from "@/document/sync/Saver";
import { EMPTY_DOCUMENT, type LoopDocument } from "@/document/types";
import { usePreferences } from "@/session/preferences";
import { presetOf } from "@/session/presetAddress";
import { useSelection } from "@/session/selection";
import { forgetUnsaved, isUnsaved } from "@/session/unsaved";
import { useServerCatalog } from "@/session/useServerCatalog";

interface OpenedLoop {
  open: OpenLoop | null;
  error: unknown;
  retry: () => void;
}

export function useOpenedLoop(id: string): OpenedLoop {
  const catalog = useServerCatalog();
  const client = useQueryClient();
  const preset = presetOf(useSearch());
  // Read once: from then on the document is the truth, not the cache.
  const loaded = useQuery({
    queryKey: ["open", id],
    queryFn: async () => {
      const loop = await fetchLoop(id, preset);
      const draft = (await browserDrafts.read(id)) ?? null;
      await fetchPlacing(draft ? mendDocument(draft.document) : savedDocument(loop));
      return { loop, draft };
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
  const [open, setOpen] = useState<OpenLoop | null>(null);

  useEffect(() => {
    if (!catalog.data || !loaded.data) return;
    const made = openLoop(catalog.data, loaded.data.loop, loaded.data.draft);
    made.sync?.start();
    setOpen(made);
    useSelection.getState().clear();
    const unwatch = made.store.subscribe(({ document }, before) => {
      if (document !== before.document) useSelection.getState().letGo(document);
    });
    const unsubscribe = whenSaved(made, () => {
      forgetUnsaved(id);
      usePreferences.getState().set({ lastLoop: id });
      void client.invalidateQueries({ queryKey: ["loops"] });
    });
    return () => {
      unwatch();
      unsubscribe();
      made.sync?.stop();
    };
  }, [catalog.data, loaded.data, id, client]);

  return {
    open,
    error: catalog.error ?? loaded.error,
    retry: () => {
      if (catalog.isError) void catalog.refetch();
      if (loaded.isError) void loaded.refetch();
    },
  };
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

/** Calls back once the server has the loop. */
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

/** What is read may hold nodes without places: it comes together with what arranges them. */
const READING: SyncApi = {
  ...routes,
  parseYaml: withArranging(routes.parseYaml),
  fetchLoop: withArranging(routes.fetchLoop),
};

function withArranging<A extends unknown[], T>(read: (...args: A) => Promise<T>) {
  return async (...args: A): Promise<T> =>
    (await Promise.all([read(...args), fetchArranging()]))[0];
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
  const sync = new LoopSync(loop, store, READING, browserDrafts, DELAYS, place);
  if (draft) sync.restore(draft);
  return { loopId: loop.id, runId: null, store, syncStore: sync.store, sync, catalog };
}
