/** Every route of the service that the page uses, one function each; the API's description types them. */
import { client, read, readPage, sendBare } from "./client";
import { keepTicket } from "./ticket";
import type {
  Bodies,
  Change,
  CurveQuery,
  CurvesQuery,
  EventPage,
  EventQuery,
  GaugesPage,
  JsonObject,
  MarksPage,
  RunQuery,
} from "./types";

/** Exchanges the server's token for a ticket, which every request brings from then on. */
export async function signIn(token: string): Promise<void> {
  const asked = client.POST("/api/session", { body: { token }, fetch: sendBare });
  keepTicket((await read(asked)).ticket);
}

export const fetchSandbox = () => read(client.GET("/api/sandbox"));

/** Voids this browser's ticket, and copies of it. */
export async function signOut(): Promise<void> {
  await read(client.DELETE("/api/session"));
  keepTicket(null);
}

export const fetchCatalog = () => read(client.GET("/api/catalog"));

export const fetchLoopPresets = () => read(client.GET("/api/presets/loops"));

export const fetchLoopPreset = (name: string) =>
  read(client.GET("/api/presets/loops/{name}", { params: { path: { name } } }));

export const fetchBlocks = () => read(client.GET("/api/blocks"));

export const saveBlock = (body: Bodies["NewBlock"]) => read(client.POST("/api/blocks", { body }));

export const deleteBlock = (block: string) =>
  read(client.DELETE("/api/blocks/{block_id}", { params: { path: { block_id: block } } }));

export const fetchHub = () => read(client.GET("/api/hub"));

export const describeHubModel = (body: Bodies["NamedModel"], signal?: AbortSignal) =>
  read(client.POST("/api/hub/models", { body, ...(signal ? { signal } : {}) }));

export const previewHubDataset = (body: Bodies["NamedRows"], signal?: AbortSignal) =>
  read(client.POST("/api/hub/datasets", { body, ...(signal ? { signal } : {}) }));

export const startDownload = (body: Bodies["NewDownload"]) =>
  read(client.POST("/api/hub/downloads", { body }));

export const cancelDownload = (key: string) =>
  read(client.DELETE("/api/hub/downloads/{key}", { params: { path: { key } } }));

export const fetchPresetNames = () => read(client.GET("/api/presets/names"));

export const fetchAboutPreset = (name: string) =>
  read(client.GET("/api/presets/loops/{name}/about", { params: { path: { name } } }));

export const fetchCodeHelp = (code: string) =>
  read(client.GET("/api/explain/{code}", { params: { path: { code } } }));

export const fetchAlgorithmHelp = (settings: JsonObject, rollout: JsonObject | null) =>
  read(
    client.GET("/api/explain/algorithm", {
      params: {
        query: {
          settings: JSON.stringify(settings),
          rollout: rollout === null ? null : JSON.stringify(rollout),
        },
      },
    }),
  );

export const check = (body: { spec: JsonObject } | { yaml: string }, signal?: AbortSignal) =>
  read(client.POST("/api/check", { body, ...until(signal) }));

export const patchYaml = (
  body: { yaml: string; spec: JsonObject } | { yaml: string; changes: Change[] },
  signal?: AbortSignal,
) => read(client.POST("/api/spec/patch", { body, ...until(signal) }));

export const dumpSpec = (spec: JsonObject, signal?: AbortSignal) =>
  read(client.POST("/api/spec/dump", { body: { spec }, ...until(signal) }));

export const readFragment = (yaml: string) =>
  read(client.POST("/api/spec/fragment", { body: { yaml } }));

export const searchLoops = (q: string, limit: number, signal?: AbortSignal) =>
  read(client.GET("/api/loops/search", { params: { query: { q, limit } }, ...until(signal) }));

export const fitLoop = (body: Bodies["FitLoop"], signal?: AbortSignal) =>
  read(client.POST("/api/fit", { body, ...until(signal) }));

export const writeJobFile = (body: Bodies["JobInput"]) => read(client.POST("/api/jobs", { body }));

export const placeLoop = (body: Bodies["LoopInput"], signal?: AbortSignal) =>
  read(client.POST("/api/place", { body, ...until(signal) }));

export const explainNumbers = (body: Bodies["LoopInput"], signal?: AbortSignal) =>
  read(client.POST("/api/terms", { body, ...until(signal) }));

export const fetchHardware = () => read(client.GET("/api/presets/hardware"));

export const fetchLoops = () => read(client.GET("/api/loops"));

export const fetchLoop = (id: string) => read(client.GET("/api/loops/{loop_id}", loop(id)));

export const createLoop = (body: Bodies["LoopText"]) => read(client.POST("/api/loops", { body }));

/** One edit: written into the text, checked, and saved over its base; without a base the loop is made. */
export const saveDocument = (id: string, body: Bodies["EditDocument"]) =>
  read(client.PUT("/api/loops/{loop_id}/document", { ...loop(id), body }));

export const fetchVersions = (id: string, before: number | null, limit: number) =>
  readPage(
    client.GET("/api/loops/{loop_id}/versions", {
      params: { path: { loop_id: id }, query: { before, limit } },
    }),
  );

export const fetchVersion = (id: string, version: number) =>
  read(client.GET("/api/loops/{loop_id}/versions/{version}", loopVersion(id, version)));

export const fetchVersionDiff = (id: string, version: number) =>
  read(client.GET("/api/loops/{loop_id}/versions/{version}/diff", loopVersion(id, version)));

export const labelVersion = (id: string, version: number, label: string | null) =>
  read(
    client.PATCH("/api/loops/{loop_id}/versions/{version}", {
      ...loopVersion(id, version),
      body: { label },
    }),
  );

export const restoreVersion = (id: string, version: number, revision: string) =>
  read(
    client.POST("/api/loops/{loop_id}/versions/{version}/restore", {
      params: { path: { loop_id: id, version }, header: { "if-match": revision } },
    }),
  );

export const importLoop = (body: Bodies["LoopText"]) =>
  read(client.POST("/api/loops/import", { body }));

/** The loop that a configuration of another framework describes; it is not saved. */
export const importConfiguration = (body: Bodies["Configuration"]) =>
  read(client.POST("/api/frameworks/import", { body }));

export const deleteLoop = (id: string) => read(client.DELETE("/api/loops/{loop_id}", loop(id)));

export const fetchLoopYaml = (id: string) =>
  read(client.GET("/api/loops/{loop_id}/yaml", { ...loop(id), parseAs: "text" }));

export const startRun = (body: Bodies["NewRun"]) => read(client.POST("/api/runs", { body }));

export const fetchRuns = (query: RunQuery) =>
  readPage(client.GET("/api/runs", { params: { query } }));

export const fetchRunTags = () => read(client.GET("/api/runs/tags"));

export const fetchRunCurves = (query: CurveQuery) =>
  read(client.GET("/api/runs/series", { params: { query } }));

/** Its name, its tags, or the priority of one that is queued. */
export const changeRun = (id: string, body: Bodies["ChangeRun"]) =>
  read(client.PATCH("/api/runs/{run_id}", { ...run(id), body }));

export const moveRun = (id: string, before: string | null) =>
  read(client.POST("/api/runs/{run_id}/move", { ...run(id), body: { before } }));

export const forkRun = (id: string, body: Bodies["ForkRun"]) =>
  read(client.POST("/api/runs/{run_id}/fork", { ...run(id), body }));

/** What differs from the loop of a run to that of another, or to the newest text of a saved loop. */
export const fetchChanges = (id: string, other: { run: string } | { loop: string }) =>
  read(client.GET("/api/runs/{run_id}/changes", asking(id, other)));

/** What differs from the loop of a run to the same with other values, by path. */
export const fetchValueChanges = (id: string, set: Bodies["CompareValues"]["set"]) =>
  read(client.POST("/api/runs/{run_id}/changes", { ...run(id), body: { set } }));

export const acknowledgeAlert = (id: string, seq: number) =>
  read(client.POST("/api/runs/{run_id}/alerts/acknowledge", { ...run(id), body: { seq } }));

export const deleteRun = (id: string) => read(client.DELETE("/api/runs/{run_id}", run(id)));

export const fetchRun = (id: string) => read(client.GET("/api/runs/{run_id}", run(id)));

/** Runs of a loop with several values of some settings. */
export const startSweep = (body: Bodies["NewSweep"]) => read(client.POST("/api/sweeps", { body }));

export const fetchSweeps = () => read(client.GET("/api/sweeps"));

export const fetchSweep = (name: string) => read(client.GET("/api/sweeps/{sweep}", sweep(name)));

/** Stops the runs of all combinations of values but the best so far. */
export const stopLosers = (name: string, keep: number) =>
  read(client.POST("/api/sweeps/{sweep}/stop", { ...sweep(name), body: { keep } }));

/** The main metric of each run, with its first, best and last reading. */
export const fetchOutcomes = (runs: readonly string[]) =>
  read(client.GET("/api/runs/outcomes", { params: { query: { runs: [...runs] } } }));

/** The tree of forks that a run belongs to. */
export const fetchFamily = (id: string) => read(client.GET("/api/runs/{run_id}/family", run(id)));

export const fetchRunSpec = (id: string) => read(client.GET("/api/runs/{run_id}/spec", run(id)));

/** What each kind of control would change in the loop of a run. */
export const fetchControlChoices = (id: string) =>
  read(client.GET("/api/runs/{run_id}/controls/choices", run(id)));

/** The runs of a run's controls, with curves and the comparison. */
export const fetchControls = (id: string) =>
  read(client.GET("/api/runs/{run_id}/controls", run(id)));

export const startControl = (id: string, body: Bodies["NewControl"]) =>
  read(client.POST("/api/runs/{run_id}/controls", { ...run(id), body }));

export const fetchReport = (id: string) => read(client.GET("/api/runs/{run_id}/report", run(id)));

export const fetchExperiment = (id: string) =>
  read(client.GET("/api/runs/{run_id}/experiment", run(id)));

export const fetchExperimentText = (id: string) =>
  read(client.GET("/api/runs/{run_id}/experiment.md", { ...run(id), parseAs: "text" }));

export const stopRun = (id: string) =>
  read(client.POST("/api/runs/{run_id}/stop", { ...run(id), body: {} }));

export const resumeRun = (id: string, trust: boolean) =>
  read(client.POST("/api/runs/{run_id}/resume", { ...run(id), body: { trust } }));

export const editRun = (id: string, changes: Bodies["EditRun"]["changes"]) =>
  read(client.POST("/api/runs/{run_id}/edit", { ...run(id), body: { changes } }));

/** Events after one, before one, or from the first of a step on. */
export const fetchEvents = (
  id: string,
  query: EventQuery,
  signal?: AbortSignal,
): Promise<EventPage> => read(client.GET("/api/runs/{run_id}/events", asking(id, query, signal)));

export const fetchMarks = (id: string, signal?: AbortSignal): Promise<MarksPage> =>
  read(client.GET("/api/runs/{run_id}/marks", { ...run(id), ...until(signal) }));

/** How a run stood at one of its events, and at the end of the steps after it. */
export const fetchGauges = (id: string, seq: number): Promise<GaugesPage> =>
  read(client.GET("/api/runs/{run_id}/gauges", asking(id, { seq })));

/** Curves of a run in buckets; of none, which there are. */
export const fetchCurves = (id: string, query: CurvesQuery, signal?: AbortSignal) =>
  read(client.GET("/api/runs/{run_id}/series", asking(id, query, signal)));

export const fetchSampleTokens = (id: string, step: number) =>
  read(client.GET("/api/runs/{run_id}/samples/tokens", asking(id, { step })));

export const fetchCheckpoints = (id: string) =>
  read(client.GET("/api/runs/{run_id}/checkpoints", run(id)));

export const fetchSamples = (id: string, step: number | null, limit: number) =>
  read(client.GET("/api/runs/{run_id}/samples", asking(id, { step, limit })));

/** Ends with its signal: the service gives up what it does for it. */
export const previewScores = (body: Bodies["AskScores"], signal?: AbortSignal) =>
  read(client.POST("/api/previews/scores", { body, ...until(signal) }));

export const fetchPreviewLimits = () => read(client.GET("/api/previews/limits"));

export const previewRows = (body: Bodies["AskRows"], signal?: AbortSignal) =>
  read(client.POST("/api/previews/rows", { body, ...until(signal) }));

export const uploadFile = (body: Bodies["NewFile"]) => read(client.POST("/api/files", { body }));

export const previewTokens = (body: Bodies["AskTokens"], signal?: AbortSignal) =>
  read(client.POST("/api/previews/tokens", { body, ...until(signal) }));

export const previewOverlap = (body: Bodies["AskOverlap"], signal?: AbortSignal) =>
  read(client.POST("/api/previews/overlap", { body, ...until(signal) }));

/** Has the engine loaded before the first preview is asked for. */
export const preparePreviews = () => read(client.POST("/api/previews/ready"));

const loop = (id: string) => ({ params: { path: { loop_id: id } } });
const loopVersion = (id: string, version: number) => ({
  params: { path: { loop_id: id, version } },
});
const sweep = (name: string) => ({ params: { path: { sweep: name } } });
const run = (id: string) => ({ params: { path: { run_id: id } } });
const asking = <Q>(id: string, query: Q, signal?: AbortSignal) => ({
  params: { path: { run_id: id }, query },
  ...until(signal),
});
const until = (signal: AbortSignal | undefined) => (signal ? { signal } : {});
