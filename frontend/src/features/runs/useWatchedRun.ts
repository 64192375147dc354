/** Opens a run: its loop with what was changed since it started, its history, and its stream. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { check, fetchRunSpec } from "@/api/routes";
import { atWork } from "@/document/atWork";
import type { OpenLoop } from "@/document/context";
import { fromSpec } from "@/document/convert";
import { withPlaces } from "@/document/layout";
import { createDocumentStore } from "@/document/store";
import { createSyncStore } from "@/document/sync/state";
import { EMPTY_DOCUMENT } from "@/document/types";
import { LiveRun } from "@/live/LiveRun";
import { RunConnection } from "@/live/RunConnection";
import { useRunEdits } from "@/session/runEdits";
import { useSelection } from "@/session/selection";
import { useServerCatalog } from "@/session/useServerCatalog";
import { followEdits } from "./followEdits";

export interface WatchedRun {
  open: OpenLoop;
  live: LiveRun;
  connection: RunConnection;
}

export function useWatchedRun(id: string): {
  watched: WatchedRun | null;
  error: unknown;
  retry: () => void;
} {
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
        ? atWork(catalog.data, withPlaces(catalog.data, fromSpec(loop)))
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
    useSelection.getState().clear();
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
