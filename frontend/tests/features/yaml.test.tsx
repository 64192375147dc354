// @vitest-environment jsdom
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError, OfflineError } from "@/api/client";
import type { CheckAnswer, JsonObject, Loop } from "@/api/types";
import { BrokenTextBanner } from "@/app/EditorLayout";
import { fromSpec, toSpec } from "@/document/convert";
import { YamlPanel } from "@/features/yaml/YamlPanel";
import { setValue } from "@/state/commands/fields";
import { OpenLoopProvider } from "@/state/document/context";
import { createDocumentStore } from "@/state/document/store";
import { focusField } from "@/state/selection";
import type { DraftStore } from "@/state/sync/drafts";
import { LoopSync } from "@/state/sync/LoopSync";
import type { SyncApi } from "@/state/sync/versions";
import { catalog, smallLoop } from "../fixtures/loops";
import { aProblem } from "../fixtures/runs";

const goTos: unknown[] = [];

vi.mock("@/ui/CodeEditor", () => ({
  CodeEditor: ({ value, goTo, onChange }: Record<string, unknown>) => {
    goTos.push(goTo);
    return (
      <textarea
        aria-label="Loop as YAML"
        value={String(value)}
        onChange={(event) => (onChange as (text: string) => void)(event.target.value)}
      />
    );
  },
}));

const CHECK: CheckAnswer = {
  report: { ok: true, diagnostics: [] },
  estimate: null,
  plan: null,
  mode: null,
};

const NO_DRAFTS: DraftStore = {
  read: async () => undefined,
  write: async () => {},
  remove: async () => {},
};

async function show() {
  const spec = toSpec(smallLoop());
  const yaml = `name: small\nnodes:\n  actor: {}\n${JSON.stringify(spec)}`;
  const loop = { id: "l", name: "small", revision: "r1", yaml, spec } as unknown as Loop;
  const store = createDocumentStore({ document: fromSpec(spec), text: yaml });
  const away = async () => {
    throw new OfflineError();
  };
  const api: SyncApi = {
    check: away,
    patchYaml: away,
    fetchLoop: away,
    createLoop: away,
    saveDocument: async (_id, { yaml, spec, strict }) => {
      if (!strict || spec) return away();
      if (!yaml.startsWith("{")) {
        const diagnostics = [aProblem({ message: "no loop" })];
        throw new ApiError(422, "spec.invalid", "no loop", { ok: false, diagnostics });
      }
      return { revision: "r2", yaml, spec: JSON.parse(yaml) as JsonObject, check: CHECK };
    },
  };
  const sync = new LoopSync(loop, store, api, NO_DRAFTS);
  const value = { loopId: "l", runId: null, store, syncStore: sync.store, sync, catalog };
  sync.start();
  render(
    <OpenLoopProvider value={value}>
      <YamlPanel />
      <BrokenTextBanner />
    </OpenLoopProvider>,
  );
  await act(() => vi.advanceTimersByTimeAsync(1));
  const editor = screen.getByLabelText<HTMLTextAreaElement>("Loop as YAML");
  const type = async (text: string) => {
    fireEvent.change(editor, { target: { value: text } });
    await act(() => vi.advanceTimersByTimeAsync(1000));
  };
  return { store, sync, yaml, spec, editor, type };
}

describe("the loop as text", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("BroadcastChannel", undefined);
    goTos.length = 0;
  });
  afterEach(() => {
    cleanup();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("is the document's again after what was typed has been read", async () => {
    const { store, spec, editor, type, sync } = await show();

    await type(JSON.stringify({ ...spec, run: { seed: 3 } }));
    expect(store.getState().document.rest.run).toEqual({ seed: 3 });
    act(() => store.setText("written by the server", null));

    expect(editor.value).toBe("written by the server");
    sync.stop();
  });

  it("is given up by the banner over the graph too", async () => {
    const { yaml, editor, type, sync } = await show();
    await type("no loop at all");
    expect(editor.value).toBe("no loop at all");

    fireEvent.click(screen.getByRole("button", { name: "Discard" }));
    await act(() => vi.advanceTimersByTimeAsync(1000));

    expect(editor.value).toBe(yaml);
    expect(screen.queryByText(/The text has errors/)).toBeNull();
    sync.stop();
  });

  it("is scrolled by a click on a problem, never by an edit", async () => {
    const { store, sync } = await show();
    act(() => focusField("actor", null));
    const asked = goTos.at(-1);
    expect(asked).toMatchObject({ line: 3 });

    act(() => {
      store.dispatch(setValue, { path: ["run", "seed"], value: 9 });
      store.setText("nodes:\n  actor: {}\n", null);
    });

    expect(goTos.at(-1)).toBe(asked);
    sync.stop();
  });
});
