// @vitest-environment jsdom
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CodeEditor } from "@/ui/code/CodeEditor";

type Props = Parameters<typeof CodeEditor>[0];

const onChange = vi.fn();
const props: Props = { label: "Text", language: "yaml", value: "", onChange };
const area = () => screen.getByLabelText<HTMLTextAreaElement>("Text");
let show: (more: Partial<Props>) => void;

function begin(more: Partial<Props>) {
  const { rerender } = render(<CodeEditor {...props} {...more} />);
  show = (next) => rerender(<CodeEditor {...props} {...more} {...next} />);
}

/** As a browser does it: the area has the text, and then says so. */
function type(text: string, at = area().value.length, to = at) {
  const { value } = area();
  choose(at, to);
  act(() => {
    area().value = value.slice(0, at) + text + value.slice(to);
    area().setSelectionRange(at + text.length, at + text.length);
    area().dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertText" }));
  });
}

function choose(from: number, to = from) {
  act(() => {
    area().focus();
    area().setSelectionRange(from, to);
    document.dispatchEvent(new Event("selectionchange"));
  });
}

const press = (key: string, more: object = {}) => fireEvent.keyDown(area(), { key, ...more });
const undo = () => press("z", { ctrlKey: true });
const redo = () => press("Z", { ctrlKey: true, shiftKey: true });
const painted = (look: string) =>
  [...document.querySelectorAll(`.${look}`)].map((one) => one.textContent);

beforeEach(() => onChange.mockClear());
afterEach(cleanup);

describe("undo in the text of a loop", () => {
  beforeEach(() => begin({ value: "seed: 0\n" }));

  it("takes back no edit of the graph", () => {
    show({ value: "seed: 5\n" });

    undo();

    expect(area().value).toBe("seed: 5\n");
    expect(onChange).not.toHaveBeenCalled();
  });

  it("takes back what was typed, and leaves what the graph changed since", () => {
    type("steps: 3\n");
    show({ value: "seed: 5\nsteps: 3\n" });

    undo();

    expect(area().value).toBe("seed: 5\n");
    expect(onChange).toHaveBeenLastCalledWith("seed: 5\n");
  });

  it("makes again what was taken back, until something else is typed", () => {
    type("steps: 3\n");
    undo();
    redo();
    expect(area().value).toBe("seed: 0\nsteps: 3\n");

    undo();
    type("name: a\n");
    redo();

    expect(area().value).toBe("seed: 0\nname: a\n");
  });

  it("what is typed without a pause is one step, and each key of a command another", () => {
    for (const letter of "ab") type(letter);
    press("Tab");
    expect(area().value).toBe("seed: 0\n  ab");

    undo();
    expect(area().value).toBe("seed: 0\nab");
    undo();
    expect(area().value).toBe("seed: 0\n");
  });
});

it("a word that is typed over another is one step", () => {
  begin({ value: "name: grpo" });
  type("d", 6, 10);
  for (const letter of "apo") type(letter);
  expect(area().value).toBe("name: dapo");

  undo();

  expect(area().value).toBe("name: grpo");
});

it("text from outside leaves the cursor at its word", () => {
  begin({ value: "seed: 0\nname: loop\n" });
  choose(14, 18);

  show({ value: "seed: 1000\nname: loop\n" });

  expect(area().value.slice(area().selectionStart, area().selectionEnd)).toBe("loop");
});

it("what comes from outside waits for the end of a word that an input method composes", () => {
  begin({ value: "a" });
  fireEvent.compositionStart(area());
  type("か");
  show({ value: "b" });
  expect(area().value).toBe("aか");

  fireEvent.compositionEnd(area());

  expect(area().value).toBe("b");
});

describe("folding", () => {
  const NODES = "nodes:\n  a:\n    kind: actor\n  b: {}\nedges: []\n";

  beforeEach(() => {
    begin({ value: NODES });
    fireEvent.click(screen.getByLabelText("Fold line 1"));
  });

  it("hides what stands further in, and only hides it", () => {
    expect(area().value).toBe("nodes:\nedges: []\n");
    expect(onChange).not.toHaveBeenCalled();

    fireEvent.click(screen.getByLabelText("Unfold line 1"));

    expect(area().value).toBe(NODES);
  });

  it("typing beside it changes the whole text", () => {
    type("1", area().value.indexOf("]"));

    expect(onChange).toHaveBeenLastCalledWith(NODES.replace("[]", "[1]"));
  });

  it("a change inside from outside is there when it opens", () => {
    show({ value: NODES.replace("actor", "critic") });
    expect(area().value).toBe("nodes:\nedges: []\n");

    fireEvent.click(screen.getByLabelText("Unfold line 1"));

    expect(area().value).toContain("kind: critic");
  });

  it("Backspace into it opens it and takes nothing away", () => {
    choose("nodes:\n".length);
    const event = new InputEvent("beforeinput", {
      inputType: "deleteContentBackward",
      cancelable: true,
    });

    act(() => void area().dispatchEvent(event));

    expect(event.defaultPrevented).toBe(true);
    expect(area().value).toBe(NODES);
  });

  it("a place in it is opened to be gone to", () => {
    show({ goTo: { line: 3, column: 5, request: 1 } });

    expect(area().value).toBe(NODES);
    expect(area().selectionStart).toBe(NODES.indexOf("kind"));
  });

  it("copies what is hidden with what is selected", () => {
    choose(0, "nodes:\n".length);
    const setData = vi.fn();

    fireEvent.copy(area(), { clipboardData: { setData } });

    expect(setData).toHaveBeenCalledWith("text/plain", NODES.slice(0, NODES.indexOf("edges")));
  });
});

describe("marks", () => {
  it("stand at their word with their message, and move with what is typed above", () => {
    begin({
      value: "seed: 0\nsteps: x\n",
      marks: [{ line: 2, column: 8, severity: "error", message: "a number is expected" }],
    });
    expect(painted("code-said-error")).toEqual(["x"]);

    type("name: a\n", 0);
    expect(painted("code-said-error")).toEqual(["x"]);
    choose(area().value.indexOf("x"));

    expect(screen.getByText("error: a number is expected")).toBeTruthy();
  });
});

describe("Tab", () => {
  beforeEach(() => begin({ value: "a" }));

  it("indents, but for the one after Escape, which goes on", () => {
    expect(press("Tab")).toBe(false);
    press("Escape");
    expect(press("Tab")).toBe(true);
    expect(press("Tab")).toBe(false);
    expect(area().value).toBe("    a");
  });

  it("goes on for good once Control+M was pressed", () => {
    press("m", { ctrlKey: true });
    expect(press("Tab")).toBe(true);
    expect(press("Tab", { shiftKey: true })).toBe(true);
  });
});

describe("search", () => {
  beforeEach(() => {
    begin({ value: "one two one\nOne\n" });
    press("f", { ctrlKey: true });
    fireEvent.change(screen.getByLabelText("Find"), { target: { value: "one" } });
  });

  it("goes around all places, and back to the text", () => {
    fireEvent.keyDown(screen.getByLabelText("Find"), { key: "Enter" });
    fireEvent.keyDown(screen.getByLabelText("Find"), { key: "Enter" });
    expect([area().selectionStart, area().selectionEnd]).toEqual([8, 11]);
    expect(screen.getByText("2 of 3")).toBeTruthy();

    fireEvent.keyDown(screen.getByLabelText("Find"), { key: "Escape" });

    expect(document.activeElement).toBe(area());
  });

  it("replaces all of them in one step", () => {
    fireEvent.click(screen.getByLabelText("Match case"));
    fireEvent.change(screen.getByLabelText("Replace"), { target: { value: "1" } });
    fireEvent.click(screen.getByText("All"));
    expect(area().value).toBe("1 two 1\nOne\n");

    undo();

    expect(area().value).toBe("one two one\nOne\n");
  });

  it("says of a pattern that it cannot be read", () => {
    fireEvent.click(screen.getByLabelText("Regular expression"));
    fireEvent.change(screen.getByLabelText("Find"), { target: { value: "(" } });

    expect(screen.getByText("cannot be read")).toBeTruthy();
  });
});

describe("completion of Python", () => {
  const words = [{ label: "prompts", detail: "what was asked" }];
  const options = () => screen.queryAllByRole("option").map((one) => one.firstChild?.textContent);

  beforeEach(() => begin({ language: "python", words, value: "def reward(problems):\n    " }));

  it("offers given names first, then those of the code, then the language's", () => {
    type("pr");
    expect(options()).toEqual([]);
    type("o");

    expect(options()).toEqual(["prompts", "problems", "property"]);
    expect(area().getAttribute("aria-activedescendant")).toBe(screen.getAllByRole("option")[0]?.id);
  });

  it("writes the chosen one", () => {
    type("p");
    press("ArrowDown");
    press("Enter");

    expect(onChange).toHaveBeenLastCalledWith("def reward(problems):\n    problems");
    expect(options()).toEqual([]);
  });

  it("is asked for by Control+Space and goes with Escape", () => {
    press(" ", { ctrlKey: true });
    expect(options()).toContain("return");

    press("Escape");

    expect(options()).toEqual([]);
  });

  it("leaves comments and strings alone, but for given names", () => {
    type("# ");
    type("p");

    expect(options()).toEqual(["prompts"]);
  });
});

it("what is only to be read takes no key", () => {
  begin({ value: "a", isReadonly: true });

  press("Tab");
  press("(");

  expect(area().readOnly).toBe(true);
  expect(onChange).not.toHaveBeenCalled();
});
