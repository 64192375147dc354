/** Every route of the service that the page uses, one function each. */
import { request, requestPage, requestText } from "./client";
import type {
  Catalog,
  Change,
  CheckAnswer,
  EventPage,
  Json,
  JsonObject,
  Loop,
  LoopPreset,
  LoopPresetText,
  LoopSummary,
  LoopVersion,
  ParseAnswer,
  PatchAnswer,
  RunSpec,
  RunSummary,
  SamplePage,
  VersionDiff,
} from "./types";

export const signIn = (token: string) => request<void>("POST", "/session", { body: { token } });

export const fetchCatalog = () => request<Catalog>("GET", "/catalog");

export const fetchLoopPresets = () => request<LoopPreset[]>("GET", "/presets/loops");

export const fetchLoopPreset = (name: string) =>
  request<LoopPresetText>("GET", `/presets/loops/${encodeURIComponent(name)}`);

export const check = (body: { spec: JsonObject } | { yaml: string }, signal?: AbortSignal) =>
  request<CheckAnswer>("POST", "/check", { body, signal });

export const parseYaml = (yaml: string, signal?: AbortSignal) =>
  request<ParseAnswer>("POST", "/spec/parse", { body: { yaml }, signal });

export const patchYaml = (
  body: { yaml: string; spec: JsonObject } | { yaml: string; changes: Change[] },
  signal?: AbortSignal,
) => request<PatchAnswer>("POST", "/spec/patch", { body, signal });

export const dumpSpec = (spec: JsonObject, signal?: AbortSignal) =>
  request<{ yaml: string }>("POST", "/spec/dump", { body: { spec }, signal });

export const fetchLoops = () => request<LoopSummary[]>("GET", "/loops");

export const fetchLoop = (id: string) => request<Loop>("GET", `/loops/${id}`);

export const createLoop = (body: { name?: string; yaml: string }) =>
  request<Loop>("POST", "/loops", { body });

/** Saves over a revision; without one the loop is made under this id. */
export const saveLoop = (
  id: string,
  revision: string,
  body: { name?: string; yaml: string; sitting?: string },
  signal?: AbortSignal,
) =>
  request<Loop>("PUT", `/loops/${id}`, {
    body,
    signal,
    headers: revision === "" ? { "If-None-Match": "*" } : { "If-Match": revision },
  });

export const fetchVersions = (id: string, before: number | null, limit: number) =>
  requestPage<LoopVersion>(`/loops/${id}/versions`, { before, limit });

export const fetchVersionDiff = (id: string, version: number) =>
  request<VersionDiff>("GET", `/loops/${id}/versions/${version}/diff`);

export const labelVersion = (id: string, version: number, label: string | null) =>
  request<LoopVersion>("PATCH", `/loops/${id}/versions/${version}`, { body: { label } });

export const restoreVersion = (id: string, version: number, revision: string) =>
  request<Loop>("POST", `/loops/${id}/versions/${version}/restore`, {
    headers: { "If-Match": revision },
  });

export const importLoop = (body: { yaml: string; name?: string }) =>
  request<Loop>("POST", "/loops/import", { body });

export const deleteLoop = (id: string) => request<void>("DELETE", `/loops/${id}`);

export const fetchLoopYaml = (id: string) => requestText(`/loops/${id}/yaml`);

export interface StartRun {
  yaml: string;
  loop_id?: string;
  name?: string;
  set?: Record<string, Json>;
  /** In place of the loop's own. */
  seed?: number;
  force?: boolean;
}

export const startRun = (body: StartRun) => request<RunSummary>("POST", "/runs", { body });

export const fetchRuns = (query: { limit: number; offset: number; search: string }) =>
  requestPage<RunSummary>("/runs", query);

export const renameRun = (id: string, name: string) =>
  request<RunSummary>("PATCH", `/runs/${id}`, { body: { name } });

export const deleteRun = (id: string) => request<void>("DELETE", `/runs/${id}`);

export const fetchRun = (id: string) => request<RunSummary>("GET", `/runs/${id}`);

export const fetchRunSpec = (id: string) => request<RunSpec>("GET", `/runs/${id}/spec`);

/** What was predicted and what was measured; there is one of a run that has ended. */
export const fetchReport = (id: string) => request<JsonObject>("GET", `/runs/${id}/report`);

export const stopRun = (id: string) =>
  request<RunSummary>("POST", `/runs/${id}/stop`, { body: {} });

export const resumeRun = (id: string) =>
  request<RunSummary>("POST", `/runs/${id}/resume`, { body: {} });

export const editRun = (id: string, changes: Record<string, Json>) =>
  request<unknown>("POST", `/runs/${id}/edit`, { body: { changes } });

export const fetchEvents = (id: string, after: number, limit: number, signal?: AbortSignal) =>
  request<EventPage>("GET", `/runs/${id}/events`, { query: { after, limit }, signal });

export const fetchSamples = (id: string, step: number | null, limit: number) =>
  request<SamplePage>("GET", `/runs/${id}/samples`, { query: { step, limit } });
