// @vitest-environment jsdom
/** Any way through the pages of a loop, with a service that has real revisions and a network that loses answers. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, render } from "@testing-library/react";
import fc from "fast-check";
import { useEffect, useId } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Route, Router, Switch } from "wouter";
import { memoryLocation } from "wouter/memory-location";
import type { JsonObject } from "@/api/types";
import { toSpec } from "@/document/convert";
import { setValue } from "@/state/commands/fields";
import type { OpenLoop } from "@/state/document/context";
import { useOpenedLoop } from "@/state/useOpenedLoop";
import { catalog, smallLoop } from "../fixtures/loops";

vi.mock("idb-keyval", () => {
  const kept = new Map<string, unknown>();
  return {
    get: async (key: string) => kept.get(key),
    set: async (key: string, value: unknown) => void kept.set(key, structuredClone(value)),
    del: async (key: string) => void kept.delete(key),
    keys: async () => [...kept.keys()],
    kept,
  };
});

const LATENCY = 20;

interface Kept {
  revision: number;
  yaml: string;
}

const seedIn = (yaml: string) => (JSON.parse(yaml) as { run: { seed: number } }).run.seed;

function withSeed(yaml: string, seed: number): string {
  const spec = JSON.parse(yaml) as JsonObject;
  return JSON.stringify({ ...spec, run: { ...(spec.run as JsonObject), seed } });
}

/** Loops with revisions, as the service keeps them; JSON stands for their text. */
function service() {
  const first = JSON.stringify(toSpec(smallLoop()));
  const loops = new Map<string, Kept>(["a", "b"].map((id) => [id, { revision: 1, yaml: first }]));
  const network = { isAnswerLost: false, isAway: false, saves: 0 };

  const loop = (id: string, { revision, yaml }: Kept) => ({
    id,
    name: "small",
    version: revision,
    revision: `r${revision}`,
    yaml,
    spec: JSON.parse(yaml),
    created_at: "",
    updated_at: "",
  });
  const wrong = (status: number) => ({ status, body: { code: "no", message: "no", detail: null } });
  const fine = (body: unknown) => ({ status: 200, body });
  const answer = (request: Request, body: JsonObject) => {
    const path = new URL(request.url).pathname;
    const [, id = ""] = /^\/api\/loops\/(\w+)(?:\/document)?$/.exec(path) ?? [];
    if (path === "/api/catalog") return fine(catalog);
    if (path === "/api/spec/patch")
      return fine({ yaml: JSON.stringify(body.spec), spec: null, diagnostics: [] });
    const check = {
      report: { ok: true, diagnostics: [] },
      estimate: null,
      plan: null,
      mode: null,
    };
    if (path === "/api/check") return fine(check);
    const kept = loops.get(id);
    if (kept === undefined) return wrong(404);
    if (request.method === "GET") return fine(loop(id, kept));
    const yaml = body.spec ? JSON.stringify(body.spec) : (body.yaml as string);
    const written = { yaml, spec: body.spec ? null : JSON.parse(yaml), check };
    if (body.base !== `r${kept.revision}`) {
      const detail = { theirs: loop(id, kept), mine: written };
      return { status: 409, body: { code: "loop.stale", message: "no", detail } };
    }
    if (yaml === kept.yaml) return fine({ ...written, revision: body.base });
    const next = { revision: kept.revision + 1, yaml };
    loops.set(id, next);
    network.saves += 1;
    return fine({ ...written, revision: `r${next.revision}` });
  };
  const wait = () => new Promise((resolve) => setTimeout(resolve, LATENCY));
  const fetch = async (request: Request) => {
    const body = request.method === "GET" ? {} : ((await request.clone().json()) as JsonObject);
    await wait();
    if (network.isAway) throw new TypeError("Failed to fetch");
    const { status, body: said } = answer(request, body);
    await wait();
    if (request.method === "PUT" && network.isAnswerLost) {
      network.isAnswerLost = false;
      throw new TypeError("Failed to fetch");
    }
    request.signal.throwIfAborted();
    const headers = { "Content-Type": "application/json" };
    return new Response(JSON.stringify(said), { status, headers });
  };
  /** Somebody else, who does not tell this browser. */
  const saveElsewhere = (id: string, seed: number) => {
    const kept = loops.get(id) as Kept;
    loops.set(id, { revision: kept.revision + 1, yaml: withSeed(kept.yaml, seed) });
  };
  return { loops, network, fetch, saveElsewhere };
}

/** Nothing of a browser outlives it: what it has open would remove the drafts of the next. */
let close = () => {};

const seen = { page: "", open: null as OpenLoop | null, error: null as unknown };

function Page({ id, path }: { id: string; path: string }) {
  const { open, error } = useOpenedLoop(id);
  const page = `${useId()} ${path}`;
  Object.assign(seen, { page, open, error });
  useEffect(
    () => () => {
      if (seen.page === page) Object.assign(seen, { open: null, error: null });
    },
    [page],
  );
  return null;
}

/** The pages of the app with nothing in them but the loop that they show. */
function browser() {
  const location = memoryLocation({ path: "/loops/a" });
  const start = () => {
    const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
    const page = render(
      <QueryClientProvider client={client}>
        <Router hook={location.hook}>
          <Switch>
            <Route path="/loops/:id">{({ id }) => <Page key={id} id={id} path="" />}</Route>
            <Route path="/loops/:id/rewards">
              {({ id }) => <Page key={`rewards of ${id}`} id={id} path="rewards" />}
            </Route>
          </Switch>
        </Router>
      </QueryClientProvider>,
    );
    return { client, page };
  };
  let { client, page } = start();
  close = () => {
    page.unmount();
    client.clear();
  };
  const go = async (path: string) => {
    await act(async () => location.navigate(path));
    await pass(1);
  };
  const reload = async () => {
    window.dispatchEvent(new Event("pagehide"));
    await pass(0);
    close();
    await pass(0);
    ({ client, page } = start());
    await pass(10 * LATENCY);
  };
  return { go, reload };
}

const pass = (milliseconds: number) =>
  act(async () => {
    await vi.advanceTimersByTimeAsync(milliseconds);
    // Modules that are loaded on demand come by no timer.
    await new Promise((resolve) => setImmediate(resolve));
  });
/** Longer than every pause, with its tries again. */
async function settle() {
  for (let turn = 0; turn < 3; turn += 1) await pass(4000);
}

const seedOf = (open: OpenLoop | null) =>
  (open?.store.getState().document.rest.run as { seed: number } | undefined)?.seed;

/** What Run sends. */
async function runs(open: OpenLoop): Promise<number | null> {
  const kept = open.sync?.keep();
  await settle();
  await kept;
  const present = open.sync?.present() ?? null;
  return present === null ? null : seedIn(present.yaml);
}

function edit(open: OpenLoop, seed: number): void {
  open.store.dispatch(setValue, { path: ["run", "seed"], value: seed });
}

describe("a loop on all its pages", () => {
  let here: ReturnType<typeof service>;
  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    vi.stubGlobal("BroadcastChannel", undefined);
    await anew();
  });
  async function anew() {
    close();
    cleanup();
    await pass(0);
    localStorage.clear();
    (
      await import("idb-keyval").then((module) => module as unknown as { kept: Map<string, 0> })
    ).kept.clear();
    here = service();
    vi.stubGlobal("fetch", here.fetch);
  }
  afterEach(() => {
    cleanup();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("is the same on the next page, with what can be undone, and Run sends it", async () => {
    const { go } = browser();
    await settle();
    edit(seen.open as OpenLoop, 5);
    await settle();

    await go("/loops/a/rewards");
    expect(seedOf(seen.open)).toBe(5);
    edit(seen.open as OpenLoop, 6);
    await go("/loops/a");

    expect(seedOf(seen.open)).toBe(6);
    expect(await runs(seen.open as OpenLoop)).toBe(6);
    expect(seedIn(here.loops.get("a")?.yaml ?? "")).toBe(6);
    seen.open?.store.undo();
    seen.open?.store.undo();
    expect(seedOf(seen.open)).toBe(0);
    await settle();
    expect(seen.open?.syncStore.getState()).toMatchObject({ save: "saved", conflict: null });
  });

  it("an edit just before the page is left is saved, and not shown as older while it is", async () => {
    const { go } = browser();
    await settle();
    edit(seen.open as OpenLoop, 5);
    await go("/elsewhere");
    await settle();
    expect(seedIn(here.loops.get("a")?.yaml ?? "")).toBe(5);
  });

  it("what was saved elsewhere meanwhile is there when one comes back", async () => {
    const { go } = browser();
    await settle();
    await go("/elsewhere");
    here.saveElsewhere("a", 8);
    await go("/loops/a");
    await settle();
    expect(seedOf(seen.open)).toBe(8);
  });

  it("a look for news that took longer than a save does not bring the older version back", async () => {
    const { go } = browser();
    await settle();
    const slow = here.fetch;
    vi.stubGlobal("fetch", async (request: Request) => {
      const answer = await slow(request);
      if (request.method === "GET") await new Promise((resolve) => setTimeout(resolve, 3000));
      return answer;
    });
    await go("/loops/a/rewards");
    await pass(3 * LATENCY);
    edit(seen.open as OpenLoop, 7);
    await settle();
    expect(seedOf(seen.open)).toBe(7);
    expect(seedIn(here.loops.get("a")?.yaml ?? "")).toBe(7);
  });

  it("one that was deleted elsewhere says so, and opens anew where it is there again", async () => {
    const { go } = browser();
    await settle();
    await go("/elsewhere");
    const kept = here.loops.get("a") as Kept;
    here.loops.delete("a");
    await go("/loops/a");
    await settle();
    expect(seen.error).toMatchObject({ status: 404 });

    here.loops.set("a", { ...kept, yaml: withSeed(kept.yaml, 3) });
    await go("/elsewhere");
    await go("/loops/a");
    await settle();
    expect(seedOf(seen.open)).toBe(3);
  });

  it("a save whose answer was lost is no conflict, not after further edits and not after a reload", async () => {
    const { reload } = browser();
    await settle();
    here.network.isAnswerLost = true;
    edit(seen.open as OpenLoop, 5);
    await pass(400);
    edit(seen.open as OpenLoop, 6);
    await reload();
    await settle();
    expect(seen.open?.syncStore.getState()).toMatchObject({ save: "saved", conflict: null });
    expect(seedOf(seen.open)).toBe(6);
    expect(seedIn(here.loops.get("a")?.yaml ?? "")).toBe(6);
  });

  it("an undo after a reload brings back what was edited before it, and saves that", async () => {
    const { reload } = browser();
    await settle();
    edit(seen.open as OpenLoop, 5);
    await reload();
    edit(seen.open as OpenLoop, 0);
    seen.open?.store.undo();
    await settle();
    expect(seedOf(seen.open)).toBe(5);
    expect(seedIn(here.loops.get("a")?.yaml ?? "")).toBe(5);
  });

  type Step =
    | { do: "edit"; seed: number }
    | { do: "go"; path: string }
    | { do: "wait"; milliseconds: number }
    | { do: "undo" | "redo" | "lose" | "away" | "back" | "reload" | "elsewhere" };
  const step = (others: readonly Step["do"][]): fc.Arbitrary<Step> =>
    fc.oneof(
      { weight: 4, arbitrary: fc.record({ do: fc.constant("edit" as const), seed: fc.nat(99) }) },
      {
        weight: 4,
        arbitrary: fc.record({
          do: fc.constant("go" as const),
          path: fc.constantFrom("/loops/a", "/loops/a/rewards", "/loops/b", "/runs"),
        }),
      },
      {
        weight: 3,
        arbitrary: fc.record({
          do: fc.constant("wait" as const),
          milliseconds: fc.constantFrom(0, 10, 30, 100, 170, 200, 250, 500, 4000),
        }),
      },
      { weight: 3, arbitrary: fc.record({ do: fc.constantFrom(...others) }) as fc.Arbitrary<Step> },
    );
  const QUIET = ["undo", "redo", "lose", "away", "back", "reload"] as const;

  /** Walks, and says after each step whether the page shows what was done last. */
  async function walk(steps: readonly Step[]) {
    await anew();
    const { go, reload } = browser();
    await settle();
    let wanted = 0;
    let past: number[] = [];
    let future: number[] = [];
    let isTouched = false;
    let path = "/loops/a";
    const onA = () => path.startsWith("/loops/a") && seen.open?.loopId === "a";
    for (const one of steps) {
      if (one.do === "edit" && onA() && one.seed !== wanted) {
        past.push(wanted);
        future = [];
        wanted = one.seed;
        edit(seen.open as OpenLoop, one.seed);
      } else if (one.do === "undo" && onA() && past.length > 0) {
        future.push(wanted);
        wanted = past.pop() as number;
        seen.open?.store.undo();
      } else if (one.do === "redo" && onA() && future.length > 0) {
        past.push(wanted);
        wanted = future.pop() as number;
        seen.open?.store.redo();
      } else if (one.do === "go") {
        path = one.path;
        await go(path);
      } else if (one.do === "wait") await pass(one.milliseconds);
      else if (one.do === "lose") here.network.isAnswerLost = true;
      else if (one.do === "away") here.network.isAway = true;
      else if (one.do === "back") here.network.isAway = false;
      else if (one.do === "reload") {
        here.network.isAway = false;
        await reload();
        past = [];
        future = [];
      } else if (one.do === "elsewhere") {
        isTouched = true;
        here.saveElsewhere("a", 100);
      }
      if (onA() && !isTouched) expect([one, seedOf(seen.open)]).toEqual([one, wanted]);
      if (!isTouched) expect(seen.open?.syncStore.getState().conflict ?? null).toBeNull();
    }
    here.network.isAway = false;
    await go("/loops/a");
    await settle();
    return { open: seen.open as OpenLoop, wanted };
  }
  const saved = () => seedIn(here.loops.get("a")?.yaml ?? "");

  it("after any walk the page, the service and Run have the last edit, and nothing was a conflict", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step(QUIET), { maxLength: 14 }), async (steps) => {
        const { open, wanted } = await walk(steps);
        expect(open.syncStore.getState()).toMatchObject({ save: "saved", conflict: null });
        expect([seedOf(open), saved(), await runs(open)]).toEqual([wanted, wanted, wanted]);
      }),
      { numRuns: 30 },
    );
  });

  it("where another client saves, too, one version is chosen and then the three agree", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step([...QUIET, "elsewhere"]), { maxLength: 14 }),
        async (steps) => {
          const { open } = await walk(steps);
          // Who looks at the page again sees what was saved meanwhile.
          document.dispatchEvent(new Event("visibilitychange"));
          await settle();
          if (open.syncStore.getState().conflict !== null) {
            const kept = open.sync?.keepMine();
            await settle();
            await kept;
          }
          const shown = seedOf(open);
          expect([saved(), await runs(open)]).toEqual([shown, shown]);
        },
      ),
      { numRuns: 20 },
    );
  });
});
