// @vitest-environment jsdom
import { completionStatus, currentCompletions, startCompletion } from "@codemirror/autocomplete";
import { redo, undo } from "@codemirror/commands";
import { foldAll, foldedRanges, forceParsing } from "@codemirror/language";
import { diagnosticCount, forEachDiagnostic } from "@codemirror/lint";
import { EditorView, runScopeHandlers } from "@codemirror/view";
import { fireEvent, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createEditor, type EditorHandle, type Language } from "@/ui/code/editor";

// jsdom has no layout.
Range.prototype.getClientRects ??= () => [] as unknown as DOMRectList;

const onChange = vi.fn();
const onLine = vi.fn();
let editor: EditorHandle;
let view: EditorView;

function begin(text: string, language: Language = "yaml", isReadonly = false) {
  const parent = document.createElement("div");
  document.body.append(parent);
  const words = () => [{ label: "prompts", detail: "what was asked" }];
  editor = createEditor(parent, {
    label: "Text",
    language,
    text,
    isReadonly,
    words,
    onChange,
    onLine,
  });
  view = EditorView.findFromDOM(parent) as EditorView;
  // Else the editor parses for some milliseconds, and goes on when nothing else is to do.
  forceParsing(view, text.length, 60_000);
}

const textOf = () => view.state.doc.toString();

function type(insert: string, from = view.state.doc.length, to = from) {
  const selection = { anchor: from + insert.length };
  view.dispatch({ changes: { from, to, insert }, selection, userEvent: "input.type" });
}

const press = (key: string, more: object = {}) =>
  runScopeHandlers(view, new KeyboardEvent("keydown", { key, ...more }), "editor");

beforeEach(() => {
  onChange.mockClear();
  onLine.mockClear();
});
afterEach(() => {
  editor.destroy();
  document.body.replaceChildren();
});

describe("undo in the text of a loop", () => {
  beforeEach(() => begin("seed: 0\n"));

  it("takes back no edit of the graph", () => {
    editor.setText("seed: 5\n");

    undo(view);

    expect(textOf()).toBe("seed: 5\n");
    expect(onChange).not.toHaveBeenCalled();
  });

  it("takes back what was typed and leaves what the graph changed since, and makes it again", () => {
    type("steps: 3\n");
    editor.setText("seed: 5\nsteps: 3\n");

    undo(view);

    expect(textOf()).toBe("seed: 5\n");
    expect(onChange).toHaveBeenLastCalledWith("seed: 5\n");
    redo(view);
    expect(textOf()).toBe("seed: 5\nsteps: 3\n");
  });
});

describe("text from outside", () => {
  it("leaves the selection at its word", () => {
    begin("seed: 0\nname: loop\n");
    view.dispatch({ selection: { anchor: 14, head: 18 } });

    editor.setText("seed: 1000\r\nname: loop\r\n");

    const { from, to } = view.state.selection.main;
    expect(view.state.sliceDoc(from, to)).toBe("loop");
    expect(textOf()).toBe("seed: 1000\nname: loop\n");
  });

  it("waits for the end of a word that an input method composes", async () => {
    begin("a");
    fireEvent.compositionStart(view.contentDOM);
    editor.setText("b");
    expect(textOf()).toBe("a");

    fireEvent.compositionEnd(view.contentDOM);

    await waitFor(() => expect(textOf()).toBe("b"));
  });

  it("stays folded where it is folded, and opens where one goes", () => {
    begin("nodes:\n  a:\n    kind: actor\nedges: []\n");
    foldAll(view);
    expect(foldedRanges(view.state).size).toBeGreaterThan(0);
    editor.setText("nodes:\n  a:\n    kind: critic\nedges: []\n");

    editor.goTo(3, 5);

    expect(foldedRanges(view.state).size).toBe(0);
    expect(view.state.selection.main.head).toBe(textOf().indexOf("kind"));
  });
});

describe("marks", () => {
  const MARK = { line: 2, column: 8, severity: "hint", message: "a number\nis expected" } as const;

  it("stand at their word and move with what is typed above", () => {
    begin("seed: 0\nsteps: many, x\n");
    editor.setMarks([MARK, { ...MARK, line: 9, column: null, severity: "error" }]);
    expect(diagnosticCount(view.state)).toBe(2);

    type("name: a\n", 0);

    const places: string[] = [];
    forEachDiagnostic(view.state, ({ severity }, from, to) => {
      places.push(`${severity} ${view.state.sliceDoc(from, to)}`);
    });
    expect(places[0]).toBe("info many");
  });

  it("of the line of the cursor are told while the editor has the focus", () => {
    begin("seed: 0\nsteps: x\n");
    editor.setMarks([MARK]);
    expect(onLine).toHaveBeenLastCalledWith("");
    vi.spyOn(view, "hasFocus", "get").mockReturnValue(true);

    view.dispatch({ selection: { anchor: 10 } });
    expect(onLine).toHaveBeenLastCalledWith("hint: a number. is expected");
    view.dispatch({ selection: { anchor: 0 } });
    expect(onLine).toHaveBeenLastCalledWith("");
  });
});

describe("completion of Python", () => {
  it("offers given names first, then those of the code and of the language", async () => {
    begin("def reward(problems):\n    pr", "python");
    view.dispatch({ selection: { anchor: view.state.doc.length } });

    startCompletion(view);

    await waitFor(() => expect(completionStatus(view.state)).toBe("active"));
    const labels = currentCompletions(view.state).map(({ label }) => label);
    expect(labels[0]).toBe("prompts");
    expect(labels).toEqual(expect.arrayContaining(["problems", "print"]));
  });
});

describe("keys", () => {
  it("Tab indents, and the selection grows to what is around it and back", () => {
    begin("def f(a):\n    return g(a, 'one two')\n", "python");
    const at = textOf().indexOf("two");
    view.dispatch({ selection: { anchor: at } });
    const chosen = () =>
      view.state.sliceDoc(view.state.selection.main.from, view.state.selection.main.to);

    press("ArrowRight", { shiftKey: true, altKey: true });
    expect(chosen()).toBe("'one two'");
    press("ArrowRight", { shiftKey: true, altKey: true });
    expect(chosen()).toBe("(a, 'one two')");
    press("ArrowLeft", { shiftKey: true, altKey: true });
    expect(chosen()).toBe("'one two'");

    view.dispatch({ selection: { anchor: 0 } });
    press("Tab");
    expect(textOf()).toMatch(/^ {4}def/);
  });

  it("what is only to be read takes none", () => {
    begin("a", "yaml", true);

    press("Tab");

    expect(textOf()).toBe("a");
    expect(view.contentDOM.getAttribute("aria-readonly")).toBe("true");
    editor.setReadonly(false);
    press("Tab");
    expect(onChange).toHaveBeenCalledOnce();
  });
});

it.each([
  ["yaml", "name: loop # why"],
  ["python", "def f(): return 'a' # why"],
  ["jinja", "{% if a %}{{ b }}{% endif %} {# why #}"],
] as const)("%s has colours", (language, text) => {
  begin(text, language);

  expect(view.contentDOM.querySelectorAll(".cm-line span").length).toBeGreaterThan(1);
});
