import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError, OfflineError } from "@/api/client";
import type { JsonObject, Loop } from "@/api/types";
import { setValue } from "@/document/commands/setValue";
import { fromSpec, toSpec } from "@/document/convert";
import { createDocumentStore } from "@/document/store";
import type { Draft, DraftStore } from "@/document/sync/drafts";
import { LoopSync, type SyncApi } from "@/document/sync/LoopSync";
import { smallLoop } from "../fixtures/loops";
import { aProblem } from "../fixtures/runs";

/** Stands for the server: JSON is the text, a revision counts the saves. */
function fakeServer() {
  const write = (spec: JsonObject) => JSON.stringify(spec);
  const spec = toSpec(smallLoop());
  const state = {
    revision: 1,
    yaml: write(spec),
    isAway: false,
    saves: 0,
    checks: 0,
  };
  const loop = (): Loop => ({
    id: "l",
    name: "small",
    version: state.revision,
    revision: `r${state.revision}`,
    yaml: state.yaml,
    spec: JSON.parse(state.yaml) as JsonObject,
    created_at: "",
    updated_at: "",
  });
  const reach = () => {
    if (state.isAway) throw new OfflineError();
  };
  const api: SyncApi = {
    check: async () => {
      reach();
      state.checks += 1;
      return { report: { ok: true, diagnostics: [] }, estimate: null, plan: null };
    },
    parseYaml: async (text) => {
      reach();
      try {
        return { spec: JSON.parse(text) as JsonObject, diagnostics: [], layout: null };
      } catch {
        return {
          spec: null,
          diagnostics: [aProblem({ code: "yaml.syntax", line: 1 })],
          layout: null,
        };
      }
    },
    patchYaml: async (body) => {
      reach();
      return { yaml: write("spec" in body ? body.spec : {}), spec: null, diagnostics: [] };
    },
    dumpSpec: async (given) => ({ yaml: write(given) }),
    saveLoop: async (_id, revision, body) => {
      reach();
      if (revision !== `r${state.revision}`) throw new ApiError(409, "conflict", "changed", null);
      state.revision += 1;
      state.saves += 1;
      state.yaml = body.yaml;
      return loop();
    },
    fetchLoop: async () => {
      reach();
      return loop();
    },
    createLoop: async ({ yaml }) => ({ ...loop(), id: "copy", yaml }),
  };
  return { api, state, loop, write };
}

function setup() {
  const server = fakeServer();
  const loop = server.loop();
  const document = createDocumentStore({
    document: fromSpec(loop.spec as JsonObject),
    text: loop.yaml,
  });
  const kept = new Map<string, Draft>();
  const drafts: DraftStore = {
    read: async (id) => kept.get(id),
    write: async (id, draft) => void kept.set(id, draft),
    remove: async (id) => void kept.delete(id),
  };
  const sync = new LoopSync(loop, document, server.api, drafts, {
    ask: 100,
    draft: 100,
    retry: 1000,
  });
  const seed = (value: number) =>
    document.getState().dispatch(setValue, { path: ["run", "seed"], value });
  return { ...server, document, sync, kept, seed, status: () => sync.store.getState().save };
}

describe("keeping a loop and the server in step", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("BroadcastChannel", undefined);
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("an edit is written, checked and saved after a pause", async () => {
    const { sync, seed, state, status, document } = setup();
    sync.start();
    await vi.advanceTimersByTimeAsync(1);

    seed(5);
    expect(status()).toBe("unsaved");
    await vi.advanceTimersByTimeAsync(500);

    expect(status()).toBe("saved");
    expect(JSON.parse(state.yaml)).toMatchObject({ run: { seed: 5 } });
    expect(document.getState().text).toBe(state.yaml);
    expect(sync.store.getState().revision).toBe("r2");
    sync.stop();
  });

  it("a burst of edits is saved once", async () => {
    const { sync, seed, state } = setup();
    sync.start();

    for (let value = 1; value <= 20; value += 1) {
      seed(value);
      await vi.advanceTimersByTimeAsync(20);
    }
    await vi.advanceTimersByTimeAsync(500);

    expect(state.saves).toBe(1);
    sync.stop();
  });

  it("without a server the work is kept in the browser and saved when it is back", async () => {
    const { sync, seed, state, status, kept } = setup();
    sync.start();
    await vi.advanceTimersByTimeAsync(1);
    state.isAway = true;

    seed(9);
    await vi.advanceTimersByTimeAsync(500);
    expect(status()).toBe("offline");
    expect(kept.get("l")?.document.rest.run).toMatchObject({ seed: 9 });

    state.isAway = false;
    await vi.advanceTimersByTimeAsync(3000);
    expect(status()).toBe("saved");
    expect(kept.has("l")).toBe(false);
    sync.stop();
  });

  it("a save over someone else's is a conflict, and nothing is written", async () => {
    const { sync, seed, state, status } = setup();
    sync.start();
    await vi.advanceTimersByTimeAsync(1);
    state.revision = 7;

    seed(3);
    await vi.advanceTimersByTimeAsync(500);

    expect(status()).toBe("conflict");
    expect(sync.store.getState().conflict?.revision).toBe("r7");
    expect(state.saves).toBe(0);
    sync.stop();
  });

  it("keep mine saves over what is there now", async () => {
    const { sync, seed, state, status } = setup();
    sync.start();
    state.revision = 7;
    seed(3);
    await vi.advanceTimersByTimeAsync(500);

    await sync.keepMine();

    expect(status()).toBe("saved");
    expect(JSON.parse(state.yaml)).toMatchObject({ run: { seed: 3 } });
    sync.stop();
  });

  it("take theirs shows theirs, and undo brings mine back", async () => {
    const { sync, seed, state, status, document, write } = setup();
    sync.start();
    const theirs = smallLoop();
    theirs.rest.run = { seed: 77 };
    state.yaml = write(toSpec(theirs));
    state.revision = 7;
    seed(3);
    await vi.advanceTimersByTimeAsync(500);

    sync.takeTheirs();
    expect(document.getState().document.rest.run).toEqual({ seed: 77 });
    expect(status()).toBe("saved");

    document.getState().undo();
    expect(document.getState().document.rest.run).toMatchObject({ seed: 3 });
    sync.stop();
  });

  it("typed text becomes one undo entry and is saved as it was typed", async () => {
    const { sync, state, document } = setup();
    sync.start();
    const text = `${state.yaml.replace('"seed":0', '"seed":  42')}`;

    await sync.applyText(text);
    await vi.advanceTimersByTimeAsync(500);

    expect(document.getState().document.rest.run).toMatchObject({ seed: 42 });
    expect(document.getState().history.past.map((entry) => entry.label)).toEqual(["Edit text"]);
    expect(state.yaml).toBe(text);
    sync.stop();
  });

  it("text that does not read keeps the last good graph and locks it", async () => {
    const { sync, seed, state, document, kept } = setup();
    sync.start();

    await sync.applyText("{ broken");
    seed(8);
    await vi.advanceTimersByTimeAsync(500);

    expect(sync.store.getState().brokenText?.text).toBe("{ broken");
    expect(document.getState().document.rest.run).toMatchObject({ seed: 0 });
    expect(state.saves).toBe(0);
    expect(kept.get("l")?.brokenText).toBe("{ broken");

    sync.discardBrokenText();
    seed(8);
    await vi.advanceTimersByTimeAsync(500);
    expect(JSON.parse(state.yaml)).toMatchObject({ run: { seed: 8 } });
    sync.stop();
  });

  it("undo brings the text of the earlier state back, comments and all", async () => {
    const { sync, seed, document } = setup();
    sync.start();
    const typed = ` ${document.getState().text} `;
    await sync.applyText(typed);
    seed(6);
    await vi.advanceTimersByTimeAsync(500);
    expect(document.getState().text).not.toBe(typed);

    document.getState().undo();

    expect(document.getState().text).toBe(typed);
    sync.stop();
  });

  it("unsaved work of an earlier visit is saved, or is a conflict where others went on", async () => {
    const first = setup();
    const draft: Draft = {
      document: smallLoop(),
      text: first.document.getState().text,
      brokenText: null,
      revision: "r1",
      at: 0,
    };
    first.sync.restore(draft);
    first.sync.start();
    first.seed(4);
    await vi.advanceTimersByTimeAsync(500);
    expect(first.status()).toBe("saved");
    first.sync.stop();

    const second = setup();
    second.state.revision = 5;
    second.sync.restore(draft);
    second.sync.start();
    second.seed(4);
    await vi.advanceTimersByTimeAsync(500);
    expect(second.status()).toBe("conflict");
    second.sync.stop();
  });
});
