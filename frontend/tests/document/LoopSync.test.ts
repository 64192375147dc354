import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError, OfflineError } from "@/api/client";
import type { Change, CheckAnswer, JsonObject, Loop } from "@/api/types";
import { fromSpec, toSpec } from "@/document/convert";
import { setValue } from "@/state/commands/fields";
import { createDocumentStore } from "@/state/document/store";
import type { Draft, DraftStore } from "@/state/sync/drafts";
import { DELAYS, LoopSync } from "@/state/sync/LoopSync";
import { NOT_SAVED } from "@/state/sync/state";
import type { SyncApi } from "@/state/sync/versions";
import { smallLoop } from "../fixtures/loops";
import { aProblem } from "../fixtures/runs";

const CHECK: CheckAnswer = {
  report: { ok: true, diagnostics: [] },
  estimate: null,
  plan: null,
  mode: null,
};

/** Stands for the server: JSON is the text, a revision counts the saves. */
function fakeServer() {
  const write = (spec: JsonObject) => JSON.stringify(spec);
  const spec = toSpec(smallLoop());
  const state = {
    revision: 1,
    yaml: write(spec),
    isAway: false,
    refusal: null as ApiError | null,
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
  const read = (text: string) => {
    try {
      return JSON.parse(text) as JsonObject;
    } catch {
      const diagnostics = [aProblem({ code: "yaml.syntax", line: 1 })];
      throw new ApiError(422, "spec.invalid", "no loop", { ok: false, diagnostics });
    }
  };
  const changed = (yaml: string, changes: readonly Change[]) =>
    Object.assign(
      JSON.parse(yaml) as JsonObject,
      Object.fromEntries(changes.map(({ path, value }) => [path, value])),
    );
  const api: SyncApi = {
    check: async () => {
      reach();
      state.checks += 1;
      return CHECK;
    },
    saveDocument: async (_id, { base, yaml, spec, strict }) => {
      reach();
      if (state.refusal) throw state.refusal;
      if (strict) await new Promise((resolve) => setTimeout(resolve, 10));
      const text = spec ? write(spec) : yaml;
      const written = { yaml: text, spec: spec ? null : read(text), check: CHECK };
      const detail = { theirs: loop(), mine: written };
      if (base !== `r${state.revision}`) throw new ApiError(409, "loop.stale", "changed", detail);
      if (text !== state.yaml) {
        state.revision += 1;
        state.saves += 1;
      }
      state.yaml = text;
      return { ...written, revision: `r${state.revision}` };
    },
    patchYaml: async (body) => {
      reach();
      const spec = "spec" in body ? body.spec : changed(body.yaml, body.changes);
      return { yaml: write(spec), spec: null, diagnostics: [] };
    },
    fetchLoop: async () => {
      reach();
      return loop();
    },
    createLoop: async ({ yaml, name }) => ({ ...loop(), id: "copy", yaml, name: name ?? "" }),
  };
  return { api, state, loop, write };
}

function setup(server = fakeServer(), loop = server.loop()) {
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
    type: 100,
    ask: 100,
    draft: 100,
    retry: 1000,
  });
  const seed = (value: number) => document.dispatch(setValue, { path: ["run", "seed"], value });
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

    document.undo();
    expect(document.getState().document.rest.run).toMatchObject({ seed: 3 });
    sync.stop();
  });

  it("typed text becomes one undo entry and is saved as it was typed", async () => {
    const { sync, state, document } = setup();
    sync.start();
    const text = `${state.yaml.replace('"seed":0', '"seed":  42')}`;

    sync.typeText(text);
    await vi.advanceTimersByTimeAsync(500);

    expect(document.getState().document.rest.run).toMatchObject({ seed: 42 });
    expect(document.getState().history.past.map((entry) => entry.label)).toEqual(["Edit text"]);
    expect(state.yaml).toBe(text);
    sync.stop();
  });

  it("text that does not read keeps the last good graph and locks it", async () => {
    const { sync, seed, state, document, kept } = setup();
    sync.start();

    sync.typeText("{ broken");
    await vi.advanceTimersByTimeAsync(150);
    seed(8);
    await vi.advanceTimersByTimeAsync(500);

    expect(sync.store.getState().brokenText?.text).toBe("{ broken");
    expect(document.getState().document.rest.run).toMatchObject({ seed: 0 });
    expect(state.saves).toBe(0);
    expect(kept.get("l")?.brokenText).toBe("{ broken");

    sync.discardText();
    expect(kept.has("l")).toBe(false);
    seed(8);
    await vi.advanceTimersByTimeAsync(500);
    expect(JSON.parse(state.yaml)).toMatchObject({ run: { seed: 8 } });
    sync.stop();
  });

  it("undo brings the text of the earlier state back, comments and all", async () => {
    const { sync, seed, document } = setup();
    sync.start();
    const typed = ` ${document.getState().text} `;
    sync.typeText(typed);
    await vi.advanceTimersByTimeAsync(500);
    seed(6);
    await vi.advanceTimersByTimeAsync(500);
    expect(document.getState().text).not.toBe(typed);

    document.undo();

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

  it("the graph is not put back by leaving the text after it was read", async () => {
    const { sync, seed, document } = setup();
    sync.start();
    sync.typeText(document.getState().text.replace('"seed":0', '"seed":42'));
    await vi.advanceTimersByTimeAsync(500);
    seed(8);
    await vi.advanceTimersByTimeAsync(500);

    sync.stop();
    sync.typeText("{ broken");
    await vi.advanceTimersByTimeAsync(500);

    expect(document.getState().document.rest.run).toMatchObject({ seed: 8 });
    expect(sync.store.getState()).toMatchObject({ typedText: null, brokenText: null });
  });

  it("text that is left within the pause is kept in the browser", async () => {
    const { sync, kept } = setup();
    sync.start();

    sync.typeText("{ half");
    sync.stop();
    await vi.advanceTimersByTimeAsync(500);

    expect(kept.get("l")?.brokenText).toBe("{ half");
  });

  it("typed text outlives a server that is away, and locks the graph until it is read", async () => {
    const { sync, state, document, kept, status } = setup();
    sync.start();
    await vi.advanceTimersByTimeAsync(1);
    const text = document.getState().text.replace('"seed":0', '"seed":42');
    state.isAway = true;

    sync.typeText(text);
    await vi.advanceTimersByTimeAsync(500);
    expect(sync.store.getState()).toMatchObject({ typedText: text, checkStatus: "offline" });
    expect(status()).toBe("offline");
    expect(kept.get("l")?.brokenText).toBe(text);
    expect(document.getState().isReadonly).toBe(true);

    state.isAway = false;
    await vi.advanceTimersByTimeAsync(5000);
    expect(document.getState().document.rest.run).toMatchObject({ seed: 42 });
    expect(document.getState().isReadonly).toBe(false);
    expect(sync.store.getState()).toMatchObject({ typedText: null, checkStatus: "done" });
    expect(status()).toBe("saved");
    expect(kept.has("l")).toBe(false);
    sync.stop();
  });

  it("saving by hand while the text is read does not lose it", async () => {
    const { sync, state, document } = setup();
    sync.start();
    await vi.advanceTimersByTimeAsync(1);

    sync.typeText(document.getState().text.replace('"seed":0', '"seed":42'));
    await vi.advanceTimersByTimeAsync(105);
    void sync.flush();
    await vi.advanceTimersByTimeAsync(500);

    expect(JSON.parse(state.yaml)).toMatchObject({ run: { seed: 42 } });
    sync.stop();
  });

  it("text that the server refuses is broken text with its reason", async () => {
    const { sync, state } = setup();
    sync.start();
    state.refusal = new ApiError(422, "text.too_long", "more than 4 MiB", null);

    sync.typeText("{}");
    await vi.advanceTimersByTimeAsync(500);

    expect(sync.store.getState().brokenText).toMatchObject({
      text: "{}",
      diagnostics: [{ code: "text.too_long", message: "more than 4 MiB" }],
    });
    sync.stop();
  });

  it("a page that is left while it saves ends the save and its draft", async () => {
    class Channel {
      isClosed = false;
      postMessage() {
        if (this.isClosed) throw new DOMException("closed", "InvalidStateError");
      }
      close() {
        this.isClosed = true;
      }
    }
    vi.stubGlobal("BroadcastChannel", Channel);
    const { sync, seed, state, api, kept, status } = setup();
    const save = api.saveDocument;
    vi.spyOn(api, "saveDocument").mockImplementation(async (...given) => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      return save(...given);
    });
    sync.start();
    seed(5);
    await vi.advanceTimersByTimeAsync(120);

    sync.stop();
    expect(kept.has("l")).toBe(true);
    await vi.advanceTimersByTimeAsync(500);

    expect(state.saves).toBe(1);
    expect(status()).toBe("saved");
    expect(kept.has("l")).toBe(false);
  });

  it("a draft that says what was saved meanwhile goes on from there", async () => {
    const server = fakeServer();
    const saved = smallLoop();
    saved.rest.run = { seed: 5 };
    const text = server.write(toSpec(saved));
    server.state.yaml = text;
    server.state.revision = 2;
    const { sync, seed, status, kept } = setup(server);

    sync.restore({ document: saved, text, brokenText: null, revision: "r1", at: 0 });
    sync.start();
    await vi.advanceTimersByTimeAsync(500);
    expect(status()).toBe("saved");
    expect(kept.has("l")).toBe(false);
    seed(6);
    await vi.advanceTimersByTimeAsync(500);

    expect(status()).toBe("saved");
    expect(sync.store.getState().revision).toBe("r3");
    sync.stop();
  });

  it("a version that says the same is no conflict", async () => {
    const { sync, seed, state, status, document } = setup();
    sync.start();
    await vi.advanceTimersByTimeAsync(1);
    seed(5);
    state.yaml = JSON.stringify(toSpec(document.getState().document));
    state.revision = 7;

    await vi.advanceTimersByTimeAsync(500);

    expect(status()).toBe("saved");
    expect(sync.store.getState()).toMatchObject({ revision: "r7", conflict: null });
    sync.stop();
  });

  it("broken text of an earlier visit is kept with the revision that it was typed on", async () => {
    const { sync, kept, document } = setup();
    const { text, document: loop } = document.getState();

    sync.restore({ document: loop, text, brokenText: "{ broken", revision: "r0", at: 0 });
    sync.start();
    await vi.advanceTimersByTimeAsync(500);

    expect(kept.get("l")).toMatchObject({ brokenText: "{ broken", revision: "r0" });
    expect(document.getState().isReadonly).toBe(true);
    sync.stop();
  });

  it("a copy of mine has what was typed, and its own name in the text", async () => {
    const { sync, api, seed, state } = setup();
    const create = vi.spyOn(api, "createLoop");
    sync.start();
    state.revision = 7;
    seed(3);
    await vi.advanceTimersByTimeAsync(500);
    sync.typeText('{"name": "small", "run": {"seed": "?"}}');

    const copy = await sync.openCopy();

    expect(copy.name).toBe("small-copy");
    expect(JSON.parse(create.mock.calls[0]?.[0].yaml ?? "")).toEqual({
      name: "small-copy",
      run: { seed: "?" },
    });
    sync.stop();
  });

  it("a loop that is no loop to the server opens as its text, and nothing is saved over it", async () => {
    const { loop, api, document, state } = setup();
    const opened = { ...loop(), spec: null, yaml: "{ broken" };
    const drafts = { read: async () => undefined, write: async () => {}, remove: async () => {} };
    const sync = new LoopSync(opened, document, api, drafts, DELAYS);
    sync.start();

    document.dispatch(setValue, { path: ["run", "seed"], value: 5 });
    await vi.advanceTimersByTimeAsync(1000);

    expect(sync.store.getState().brokenText).toMatchObject({
      text: "{ broken",
      diagnostics: [{ code: "yaml.syntax" }],
    });
    expect(state.saves).toBe(0);
    sync.stop();
  });

  it("keep mine saves over theirs also where only the text was at odds", async () => {
    const { sync, state, status, document } = setup();
    sync.start();
    await vi.advanceTimersByTimeAsync(1);
    const mine = document.getState().text;
    sync.typeText("{ broken");
    await vi.advanceTimersByTimeAsync(500);
    state.yaml = mine.replace('"seed":0', '"seed":77');
    state.revision = 7;
    sync.discardText();
    sync.store.setState({
      save: "conflict",
      conflict: { ...sync.loop, yaml: state.yaml, revision: "r7" },
    });

    await sync.keepMine();

    expect(status()).toBe("saved");
    expect(state.yaml).toBe(mine);
    sync.stop();
  });

  it("a flush is over when the last edit is written, checked and saved, though newer ones came", async () => {
    const { sync, seed, state, api, document } = setup();
    const save = api.saveDocument;
    vi.spyOn(api, "saveDocument").mockImplementation(async (...given) => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      return save(...given);
    });
    sync.start();
    await vi.advanceTimersByTimeAsync(1);
    seed(5);
    let isOver = false;

    void sync.flush().then(() => {
      isOver = true;
    });
    await vi.advanceTimersByTimeAsync(50);
    seed(6);
    await vi.advanceTimersByTimeAsync(200);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1000);

    expect(isOver).toBe(true);
    expect(JSON.parse(document.getState().text)).toMatchObject({ run: { seed: 6 } });
    expect(JSON.parse(state.yaml)).toMatchObject({ run: { seed: 6 } });
    expect(JSON.parse(sync.present()?.yaml ?? "null")).toMatchObject({ run: { seed: 6 } });
    sync.stop();
  });

  it("a flush takes what is typed while it is under way", async () => {
    const { sync, state, document } = setup();
    sync.start();
    await vi.advanceTimersByTimeAsync(1);
    const { text } = document.getState();
    sync.typeText(text.replace('"seed":0', '"seed":4'));

    const flushed = sync.flush();
    sync.typeText(text.replace('"seed":0', '"seed":42'));
    await vi.advanceTimersByTimeAsync(500);
    await flushed;

    expect(JSON.parse(state.yaml)).toMatchObject({ run: { seed: 42 } });
    expect(sync.present()?.yaml).toBe(state.yaml);
    sync.stop();
  });

  it.each(["offline", "refused", "conflict"] as const)(
    "a flush ends where only the server or the user can help: %s",
    async (end) => {
      const { sync, seed, state, api, status } = setup();
      sync.start();
      await vi.advanceTimersByTimeAsync(1);
      if (end === "offline") state.isAway = true;
      if (end === "conflict") state.revision = 7;
      if (end === "refused") {
        vi.spyOn(api, "saveDocument").mockRejectedValue(new ApiError(422, "no", "no", null));
      }
      seed(5);

      const flushed = sync.flush();
      await vi.advanceTimersByTimeAsync(50);
      await flushed;

      expect(status()).toBe(end);
      sync.stop();
    },
  );

  it("a save that gets no answer ends a flush too", async () => {
    const { sync, seed, api, status } = setup();
    sync.start();
    await vi.advanceTimersByTimeAsync(1);
    vi.spyOn(api, "saveDocument").mockRejectedValue(new OfflineError());
    seed(5);

    const flushed = sync.flush();
    await vi.advanceTimersByTimeAsync(50);
    await flushed;

    expect(status()).toBe("offline");
    sync.stop();
  });

  it("a loop whose text and graph disagree, or that is not checked, is not there to be run", async () => {
    const { sync, seed } = setup();
    sync.start();
    expect(sync.present()).toBeNull();
    await vi.advanceTimersByTimeAsync(50);
    expect(sync.present()).not.toBeNull();

    seed(5);
    expect(sync.present()).toBeNull();
    await vi.advanceTimersByTimeAsync(500);
    expect(JSON.parse(sync.present()?.yaml ?? "null")).toMatchObject({ run: { seed: 5 } });
    sync.typeText("{ broken");
    expect(sync.present()).toBeNull();
    await vi.advanceTimersByTimeAsync(500);
    expect(sync.present()).toBeNull();
    sync.stop();
  });

  it("an edit during a save is saved after it, once", async () => {
    const { sync, seed, state, api, status } = setup();
    const save = api.saveDocument;
    vi.spyOn(api, "saveDocument").mockImplementation(async (...given) => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      return save(...given);
    });
    sync.start();
    await vi.advanceTimersByTimeAsync(1);

    seed(5);
    await vi.advanceTimersByTimeAsync(150);
    expect(status()).toBe("saving");
    seed(6);
    await vi.advanceTimersByTimeAsync(2000);

    expect(state.saves).toBe(2);
    expect(status()).toBe("saved");
    expect(JSON.parse(state.yaml)).toMatchObject({ run: { seed: 6 } });
    sync.stop();
  });
});

describe("how often the server is asked", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("BroadcastChannel", undefined);
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  async function counted() {
    const server = fakeServer();
    const asked: string[] = [];
    const note =
      <A extends unknown[], T>(name: string, route: (...args: A) => T) =>
      (...args: A) => {
        asked.push(name);
        return route(...args);
      };
    const entries = Object.entries(server.api).map(([name, route]) => [
      name,
      note(name, route as (...args: unknown[]) => unknown),
    ]);
    const api = Object.fromEntries(entries) as unknown as SyncApi;
    const made = setup({ ...server, api });
    made.sync.start();
    await vi.advanceTimersByTimeAsync(500);
    expect(asked.splice(0)).toEqual(["check"]);
    return { ...made, asked };
  }

  it.each([
    ["of the graph", ({ seed }: Awaited<ReturnType<typeof counted>>) => seed(5)],
    [
      "of the text",
      ({ sync, state }: Awaited<ReturnType<typeof counted>>) =>
        sync.typeText(state.yaml.replace('"seed":0', '"seed":5')),
    ],
    ["that does not read", ({ sync }: Awaited<ReturnType<typeof counted>>) => sync.typeText("{")],
    [
      "that collides with another one",
      ({ seed, state }: Awaited<ReturnType<typeof counted>>) => {
        state.revision = 7;
        seed(5);
      },
    ],
  ])("once for an edit %s", async (_what, edit) => {
    const made = await counted();

    edit(made);
    await vi.advanceTimersByTimeAsync(5000);

    expect(made.asked).toEqual(["saveDocument"]);
    made.sync.stop();
  });

  it("once for an undo, which sends the text of before as it was", async () => {
    const { asked, document, seed, state, sync } = await counted();
    const { yaml } = state;
    seed(5);
    await vi.advanceTimersByTimeAsync(1000);

    document.undo();
    await vi.advanceTimersByTimeAsync(1000);

    expect(asked).toEqual(["saveDocument", "saveDocument"]);
    expect(state.yaml).toBe(yaml);
    sync.stop();
  });

  it("once more for edits during a save, however many", async () => {
    const { asked, api, seed, state, sync } = await counted();
    const save = api.saveDocument;
    vi.spyOn(api, "saveDocument").mockImplementation(async (...given) => {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      return save(...given);
    });
    seed(5);
    await vi.advanceTimersByTimeAsync(200);

    for (const value of [6, 7, 8]) {
      seed(value);
      await vi.advanceTimersByTimeAsync(150);
    }
    await vi.advanceTimersByTimeAsync(5000);

    expect(asked).toEqual(["saveDocument", "saveDocument"]);
    expect(JSON.parse(state.yaml)).toMatchObject({ run: { seed: 8 } });
    sync.stop();
  });

  it("a save without an answer is known again, though more was edited since", async () => {
    const { asked, api, seed, state, status, sync } = await counted();
    const save = api.saveDocument;
    vi.spyOn(api, "saveDocument").mockImplementationOnce(async (...given) => {
      await save(...given);
      throw new OfflineError();
    });
    seed(5);
    await vi.advanceTimersByTimeAsync(200);
    expect(status()).toBe("offline");
    expect(state.revision).toBe(2);

    seed(6);
    await vi.advanceTimersByTimeAsync(3000);

    expect(status()).toBe("saved");
    expect(JSON.parse(state.yaml)).toMatchObject({ run: { seed: 6 } });
    expect(asked).toEqual(["saveDocument", "saveDocument", "patchYaml", "saveDocument"]);
    sync.stop();
  });
});

describe("a preset that is looked at", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function look() {
    const server = fakeServer();
    const made: { base: string | null; edit_session?: string | null | undefined }[] = [];
    const api: SyncApi = {
      ...server.api,
      saveDocument: async (id, body) => {
        made.push({ base: body.base, edit_session: body.edit_session });
        const base = body.base ?? `r${server.state.revision}`;
        return server.api.saveDocument(id, { ...body, base });
      },
    };
    return { made, ...setup({ ...server, api }, { ...server.loop(), revision: NOT_SAVED }) };
  }

  it("is not saved by looking", async () => {
    const { sync, made, state } = look();
    sync.start();
    await vi.advanceTimersByTimeAsync(5000);
    await sync.flush();
    expect(state.checks).toBeGreaterThan(0);
    expect(made).toEqual([]);
    expect(sync.store.getState().revision).toBe(NOT_SAVED);
    sync.stop();
  });

  it("is made by the first change, and saved over by the next", async () => {
    const { sync, made, seed, status } = look();
    sync.start();
    seed(1);
    await vi.advanceTimersByTimeAsync(1000);
    seed(2);
    await vi.advanceTimersByTimeAsync(1000);
    expect(made.map(({ base }) => base)).toEqual([null, "r2"]);
    expect(status()).toBe("saved");
    sync.stop();
  });

  it("is made by a run, once", async () => {
    const { sync, made } = look();
    sync.start();
    const keeping = sync.keep();
    await vi.advanceTimersByTimeAsync(1000);
    await keeping;
    const again = sync.keep();
    await vi.advanceTimersByTimeAsync(1000);
    await again;
    expect(made.map(({ base }) => base)).toEqual([null]);
    expect(sync.present()).not.toBeNull();
    sync.stop();
  });

  it("names the tab whose edits these are", async () => {
    const { sync, made, seed } = look();
    sync.start();
    seed(1);
    await vi.advanceTimersByTimeAsync(1000);
    seed(2);
    await vi.advanceTimersByTimeAsync(1000);
    expect(made[0]?.edit_session).toBeTruthy();
    expect(made[1]?.edit_session).toBe(made[0]?.edit_session);
    sync.stop();
  });

  it("what was restored is on the screen, and undo brings back what was there", async () => {
    const { sync, document, seed, loop, write, state } = setup();
    sync.start();
    seed(7);
    await vi.advanceTimersByTimeAsync(1000);
    const before = document.getState().text;
    const spec = { ...(loop().spec as JsonObject), run: { seed: 3 } };
    state.revision += 1;
    state.yaml = write(spec);
    sync.adopt({ ...loop(), spec }, "Restore version 1");
    await vi.advanceTimersByTimeAsync(1000);
    expect(document.getState().document.rest.run).toEqual({ seed: 3 });
    expect(sync.store.getState().save).toBe("saved");
    expect(document.undo()).toBe("Restore version 1");
    await vi.advanceTimersByTimeAsync(1000);
    expect(document.getState().text).toBe(before);
    sync.stop();
  });
});
