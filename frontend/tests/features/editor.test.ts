// @vitest-environment jsdom
import { undo } from "@codemirror/commands";
import { EditorView } from "@codemirror/view";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createEditor, type EditorHandle } from "@/ui/code/editor";

describe("undo in the text of a loop", () => {
  const onChange = vi.fn();
  let host: HTMLElement;
  let editor: EditorHandle;
  const view = () => EditorView.findFromDOM(host) as EditorView;
  const text = () => view().state.doc.toString();
  const type = (insert: string) =>
    view().dispatch({ changes: { from: text().length, insert }, userEvent: "input.type" });

  beforeEach(() => {
    host = document.createElement("div");
    onChange.mockClear();
    const options = { label: "Text", language: "yaml", isReadonly: false, onChange } as const;
    editor = createEditor(host, { ...options, text: "seed: 0\n" });
  });
  afterEach(() => editor.destroy());

  it("takes back no edit of the graph", () => {
    editor.setText("seed: 5\n");

    undo(view());

    expect(text()).toBe("seed: 5\n");
    expect(onChange).not.toHaveBeenCalled();
  });

  it("takes back what was typed, and leaves what the graph changed since", () => {
    type("steps: 3\n");
    editor.setText("seed: 5\nsteps: 3\n");

    undo(view());

    expect(text()).toBe("seed: 5\n");
    expect(onChange).toHaveBeenLastCalledWith("seed: 5\n");
  });
});
