// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, createEvent, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import type { Loop, LoopSummary } from "@/api/types";
import { DropZone } from "@/features/loops/DropZone";
import { LoopRow } from "@/features/loops/LoopRow";
import { TooltipProvider } from "@/ui/Tooltip";

function show(content: React.ReactNode): void {
  render(
    <QueryClientProvider client={new QueryClient()}>
      <TooltipProvider>{content}</TooltipProvider>
    </QueryClientProvider>,
  );
}

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
    const file = Object.assign(new File(["x"], "x.yaml"), { text: async () => "name: x" });
    const drop = createEvent.drop(editor, { dataTransfer: { types: ["Files"], files: [file] } });

    await act(async () => void fireEvent(editor, drop));

    expect(made).toHaveBeenCalledWith({ yaml: "name: x" });
    expect(paste).not.toHaveBeenCalled();
    expect(drop.defaultPrevented).toBe(true);
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
});
