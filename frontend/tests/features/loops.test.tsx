// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, createEvent, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import type { Loop, LoopPreset, LoopPresetText, LoopSummary } from "@/api/types";
import { DropZone } from "@/features/loops/DropZone";
import { LoopRow } from "@/features/loops/LoopRow";
import { NewLoopDialog } from "@/features/loops/NewLoopDialog";
import { showDialog, useDialogs } from "@/state/dialogs";
import { choose } from "../fixtures/choose";
import { catalog } from "../fixtures/loops";

function show(content: React.ReactNode): void {
  render(<QueryClientProvider client={new QueryClient()}>{content}</QueryClientProvider>);
}

const aPreset = (name: string): LoopPreset => ({
  name,
  title: `Title of ${name}`,
  description: "",
  runnable_here: true,
  traits: {
    lesson: "What a reward edge does",
    tags: [],
    mode: "online",
    learners: ["actor"],
    algorithms: ["GRPO"],
    needs_gpus: false,
    gpus: 0,
    hardware: "cpu",
    seconds: 60,
    is_whole: true,
  },
  sketch: { nodes: [{ id: "actor", kind: "actor", learns: true }], edges: [] },
});

describe("loops as files", () => {
  afterEach(() => {
    cleanup();
    vi.restoreAllMocks();
  });

  it("a file that is dropped on an editor is imported only", async () => {
    const made = vi.spyOn(routes, "importLoop").mockResolvedValue({ id: "new" } as Loop);
    const paste = vi.fn();
    show(
      <DropZone>
        <textarea data-testid="editor" onDrop={paste} />
      </DropZone>,
    );
    const editor = screen.getByTestId("editor");
    const file = new File(["name: x"], "x.yaml");
    const drop = createEvent.drop(editor, { dataTransfer: { types: ["Files"], files: [file] } });

    await act(async () => void fireEvent(editor, drop));

    await vi.waitFor(() => expect(made).toHaveBeenCalledWith({ yaml: "name: x" }));
    expect(paste).not.toHaveBeenCalled();
    expect(drop.defaultPrevented).toBe(true);
  });

  it("of a run's folder the loop that it ran is imported, and of nothing else in it", async () => {
    const made = vi.spyOn(routes, "importLoop").mockResolvedValue({ id: "new" } as Loop);
    show(<DropZone>page</DropZone>);
    const fileEntry = (name: string) => ({
      ...{ isFile: true, isDirectory: false, name },
      file: (done: (file: File) => void) => done(new File([`name: ${name}`], name)),
    });
    const parts = [[fileEntry("plan.yaml"), fileEntry("spec.yaml")], [fileEntry("last.yaml")], []];
    const folder = {
      ...{ isFile: false, isDirectory: true, name: "run-1" },
      createReader: () => ({ readEntries: (done: (part: unknown) => void) => done(parts.shift()) }),
    };
    const items = [{ webkitGetAsEntry: () => folder }];

    fireEvent.drop(window, { dataTransfer: { types: ["Files"], files: [], items } });

    await vi.waitFor(() => expect(made.mock.calls).toEqual([[{ yaml: "name: spec.yaml" }]]));
  });

  it("what is no file goes to where it was dropped", () => {
    const take = vi.fn();
    show(
      <DropZone>
        <textarea data-testid="graph" onDrop={take} />
      </DropZone>,
    );

    fireEvent.drop(screen.getByTestId("graph"), { dataTransfer: { types: ["text/plain"] } });

    expect(take).toHaveBeenCalledOnce();
  });

  it("a copy says its name in its text", async () => {
    vi.spyOn(routes, "fetchLoop").mockResolvedValue({ yaml: "name: small" } as Loop);
    const patch = vi
      .spyOn(routes, "patchYaml")
      .mockResolvedValue({ yaml: "name: small-copy", spec: null, diagnostics: [] });
    const create = vi.spyOn(routes, "createLoop").mockResolvedValue({ id: "copy" } as Loop);
    show(<LoopRow loop={{ id: "l", name: "small", version: 1 } as LoopSummary} />);

    await act(async () => void fireEvent.click(screen.getByLabelText("Duplicate small")));

    expect(patch).toHaveBeenCalledWith({
      yaml: "name: small",
      changes: [{ op: "set", path: "name", value: "small-copy" }],
    });
    expect(create).toHaveBeenCalledWith({ name: "small-copy", yaml: "name: small-copy" });
  });

  describe("a new one", () => {
    const answers = () => {
      vi.spyOn(routes, "fetchCatalog").mockResolvedValue(catalog);
      vi.spyOn(routes, "fetchLoopPresets").mockResolvedValue([aPreset("one"), aPreset("two")]);
      vi.spyOn(routes, "fetchLoopPreset").mockResolvedValue({ yaml: "preset" } as LoopPresetText);
      const patch = vi
        .spyOn(routes, "patchYaml")
        .mockResolvedValue({ yaml: "made", spec: null, diagnostics: [] });
      const create = vi.spyOn(routes, "createLoop").mockResolvedValue({ id: "new" } as Loop);
      show(<NewLoopDialog />);
      act(() => showDialog("newLoop"));
      return { patch, create };
    };
    const submit = () =>
      act(
        async () => void fireEvent.submit(screen.getByLabelText("Name").closest("form") as Element),
      );

    it("has the modes of the service, and a name and mode that are written into its text", async () => {
      const { patch, create } = answers();
      expect(document.activeElement).toBe(screen.getByLabelText("Name"));
      for (const { title } of catalog.modes)
        await screen.findByRole("radio", { name: new RegExp(`^${title}`) });

      fireEvent.change(screen.getByLabelText("Name"), { target: { value: "mine" } });
      fireEvent.click(screen.getByRole("radio", { name: /^Offline/ }));
      await submit();

      expect(patch.mock.calls[0]?.[0]).toMatchObject({
        yaml: expect.stringContaining("nodes: {}"),
        changes: [
          { op: "set", path: "name", value: "mine" },
          { op: "set", path: "mode", value: "offline" },
        ],
      });
      expect(create).toHaveBeenCalledWith({ name: "mine", yaml: "made" });
      expect(useDialogs.getState().open).toBeNull();
    });

    it("begins as a preset, under that one's name where none is typed", async () => {
      const { patch } = answers();

      fireEvent.click(await screen.findByRole("radio", { name: /^From a preset/ }));
      choose(await screen.findByLabelText("Preset"), /^Title of two/);
      await submit();

      expect(routes.fetchLoopPreset).toHaveBeenCalledWith("two");
      expect(patch.mock.calls[0]?.[0]).toEqual({
        yaml: "preset",
        changes: [{ op: "set", path: "name", value: "two" }],
      });
    });

    it("is not made under a name that a loop cannot have, nor when escape is pressed", async () => {
      const { create } = answers();
      await screen.findByRole("radio", { name: /^Offline/ });

      fireEvent.change(screen.getByLabelText("Name"), { target: { value: "my loop" } });
      await submit();
      expect(screen.getByText(/cannot contain a space/)).toBeDefined();
      fireEvent.keyDown(screen.getByLabelText("Name"), { key: "Escape" });

      expect(useDialogs.getState().open).toBeNull();
      expect(create).not.toHaveBeenCalled();
    });
  });
});
