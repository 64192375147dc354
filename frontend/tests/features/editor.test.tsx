// @vitest-environment jsdom
import { act, cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
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

/** As a browser does it: the area is told, has the text, and then says so. */
function type(text: string, at = area().value.length, to = at) {
  choose(at, to);
  const inputType = text.length === 1 ? "insertText" : "insertFromPaste";
  act(() => {
    const asked = { bubbles: true, cancelable: true, inputType, data: text };
    if (area().dispatchEvent(new InputEvent("beforeinput", asked))) write(text, inputType);
  });
}

type Field = HTMLTextAreaElement | HTMLInputElement;

function write(text: string, inputType: string, field: Field = area()) {
  field.setRangeText(text, field.selectionStart ?? 0, field.selectionEnd ?? 0, "end");
  field.dispatchEvent(new InputEvent("input", { bubbles: true, inputType }));
}

function choose(from: number, to = from) {
  act(() => {
    area().focus();
    area().setSelectionRange(from, to);
    area().dispatchEvent(new Event("selectionchange"));
  });
}

const press = (key: string, more: object = {}) =>
  fireEvent.keyDown(area(), { key, keyCode: key.toUpperCase().charCodeAt(0), ...more });
const undo = () => press("z", { ctrlKey: true });
const redo = () => press("Z", { ctrlKey: true, shiftKey: true });
const painted = (look: string) =>
  [...document.querySelectorAll(`.${look}`)].map((one) => one.textContent);

// What jsdom has not: commands that write into what has the focus, and scrolling.
const read = (html: string) => html.replaceAll("&lt;", "<").replaceAll("&amp;", "&");
document.execCommand = (name, _, html = "") => {
  const text = name === "delete" ? "" : read(html).replace(/\n$/, "");
  write(text, "insertFromPaste", document.activeElement as Field);
  return true;
};
Element.prototype.scrollIntoView = () => {};
HTMLElement.prototype.showPopover = () => {};
HTMLInputElement.prototype.select = function () {
  this.focus();
  this.setSelectionRange(0, this.value.length);
};
const style = document.createElement("style");
style.textContent =
  ".pce-ac-row, .prism-search, .prism-code-editor { height: 20px; top: 0; margin: 0 }";
document.head.append(style);

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
    expect(area().value).toBe("seed: 0\nab  ");

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

    const numbers = () =>
      [...document.querySelectorAll<HTMLElement>(".pce-line")].map((row) => row.dataset.number);
    expect(numbers()).toEqual(["1", "5", "6"]);

    fireEvent.click(screen.getByLabelText("Unfold line 1"));

    expect(area().value).toBe(NODES);
    expect(numbers()).toEqual(["1", "2", "3", "4", "5", "6"]);
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

describe("a long text", () => {
  const lines = Array.from({ length: 3000 }, (_, at) => `key_${at}: ${at}`).join("\n");
  const row = (text: string) =>
    [...document.querySelectorAll(".pce-line")].find((one) => one.textContent === `${text}\n`);

  it("has the lines in sight in the page, with their numbers, and not the others", () => {
    begin({ value: lines });
    expect(row("key_1: 1")?.querySelector(".number")?.textContent).toBe("1");
    expect(document.querySelectorAll(".pce-line").length).toBeLessThan(200);

    const box = document.querySelector<HTMLElement>(".prism-code-editor") as HTMLElement;
    box.scrollTop = 18 * 2000;
    fireEvent.scroll(box);

    expect(row("key_2000: 2000")?.getAttribute("data-number")).toBe("2001");
    expect(row("key_1: 1")).toBeUndefined();
  });

  it("says that it has no colours when it is too long for them", () => {
    begin({ value: lines });
    expect(screen.queryByText(/Too long for colours/)).toBeNull();

    show({ value: lines.repeat(6) });

    expect(screen.getByText(/Too long for colours/)).toBeTruthy();
    expect(row("key_1: 1")?.querySelector("span")).toBeNull();
    show({ value: lines });
    expect(row("key_1: 1")?.querySelector(".number")).toBeTruthy();
  });
});

describe("selecting", () => {
  it("grows to what is around it, and back", () => {
    begin({ language: "python", value: "def f(a):\n    return g(a, 'one two')\n\nx = 1\n" });
    const chosen = () => area().value.slice(area().selectionStart, area().selectionEnd);
    const at = area().value.indexOf("two");
    choose(at, at);
    const seen = Array.from({ length: 9 }, () => {
      press("ArrowRight", { shiftKey: true, altKey: true });
      return chosen();
    });

    expect(seen).toEqual([
      "two",
      "one two",
      "'one two'",
      "a, 'one two'",
      "(a, 'one two')",
      "return g(a, 'one two')",
      "    return g(a, 'one two')",
      "def f(a):\n    return g(a, 'one two')",
      area().value,
    ]);
    for (let back = 0; back < 8; back += 1) press("ArrowLeft", { shiftKey: true, altKey: true });
    expect(chosen()).toBe("two");
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

  it("goes on for good once Control+M was pressed, in this editor only", () => {
    render(<CodeEditor {...props} label="Other" value="b" />);
    choose(1);
    press("m", { ctrlKey: true });
    expect(press("Tab")).toBe(true);
    expect(press("Tab", { shiftKey: true })).toBe(true);
    expect(screen.getByText(/Control\+M lets it indent again/)).toBeTruthy();

    const other = screen.getByLabelText("Other");
    act(() => other.focus());

    expect(fireEvent.keyDown(other, { key: "Tab", keyCode: 9 })).toBe(false);
    act(() => area().focus());
    press("m", { ctrlKey: true });
    expect(press("Tab")).toBe(false);
  });
});

describe("search", () => {
  beforeEach(() => {
    begin({ value: "one two one\nOne\n" });
    press("f", { ctrlKey: true });
    fireEvent.input(screen.getByLabelText("Find"), { target: { value: "one" } });
  });

  it("goes around all places, and back to the text", () => {
    fireEvent.keyDown(screen.getByLabelText("Find"), { key: "Enter", keyCode: 13 });
    expect([area().selectionStart, area().selectionEnd]).toEqual([8, 11]);
    expect(screen.getByText((_, one) => one?.textContent === "2 of 3")).toBeTruthy();

    fireEvent.keyDown(screen.getByLabelText("Find"), { key: "Escape", keyCode: 27 });

    expect(document.activeElement).toBe(area());
  });

  it("replaces all of them in one step", () => {
    fireEvent.click(screen.getByTitle(/^Preserve Case/));
    fireEvent.input(screen.getByLabelText("Replace"), { target: { value: "1" } });
    fireEvent.click(screen.getByText("All"));
    expect(area().value).toBe("1 two 1\nOne\n");

    undo();

    expect(area().value).toBe("one two one\nOne\n");
  });

  it("puts groups of a pattern where they are named", () => {
    fireEvent.click(screen.getByTitle(/^RegExp/));
    fireEvent.input(screen.getByLabelText("Find"), { target: { value: "(o)(\\w+)" } });
    fireEvent.input(screen.getByLabelText("Replace"), { target: { value: "$2-$1$$$9\\n" } });

    fireEvent.click(screen.getByText("Replace"));
    expect(area().value).toBe("ne-o$$9\n two one\nOne\n");
    expect(screen.getByLabelText<HTMLInputElement>("Replace").value).toBe("$2-$1$$$9\\n");
    undo();
    fireEvent.click(screen.getByText("All"));

    expect(area().value).toBe("ne-o$$9\n two ne-o$$9\n\nne-O$$9\n\n");
    undo();
    expect(area().value).toBe("one two one\nOne\n");
  });

  it("says of a pattern that it cannot be read", () => {
    fireEvent.click(screen.getByTitle(/^RegExp/));
    fireEvent.input(screen.getByLabelText("Find"), { target: { value: "(" } });

    expect(screen.getByText(/Unterminated group/)).toBeTruthy();
  });
});

describe("completion of Python", () => {
  const words = [{ label: "prompts", detail: "what was asked" }];
  const rows = () => [...document.querySelectorAll("[role=option]")];
  const options = () =>
    rows()
      .slice(0, Number(rows()[0]?.getAttribute("aria-setsize") ?? 0))
      .map((one) => one.querySelector(".pce-ac-label")?.textContent);

  beforeEach(() => begin({ language: "python", words, value: "def reward(problems):\n    " }));

  it("offers given names first, then those of the code, then the language's", async () => {
    type("pr");
    expect(options()).toEqual([]);
    type("o");

    expect(options()).toEqual(["prompts", "problems", "property"]);
    expect(area().getAttribute("aria-activedescendant")).toBe(rows()[0]?.id);
    await waitFor(() =>
      expect(screen.getByRole("listbox", { name: "Completions", hidden: true })).toBeTruthy(),
    );
    expect(
      rows()
        .map((row) => row.getAttribute("aria-posinset"))
        .slice(0, 3),
    ).toEqual(["1", "2", "3"]);
    expect(rows().filter((row) => !(row as HTMLElement).hidden)).toHaveLength(3);
  });

  it("writes the chosen one", () => {
    type("p");
    press("ArrowDown");
    press("Enter");

    expect(onChange).toHaveBeenLastCalledWith("def reward(problems):\n    problems");
    expect(options()).toEqual([]);
  });

  it("goes through the gaps of what it wrote by Tab", () => {
    const chosen = () => [area().selectionStart, area().selectionEnd];
    const at = (word: string) => area().value.lastIndexOf(word);
    for (const letter of "for") type(letter);
    press("Enter");
    expect(area().value).toMatch(/for name in items:\n {8}$/);
    expect(chosen()).toEqual([at("name"), at("name") + 4]);

    type("row", at("name"), at("name") + 4);
    press("Tab");
    expect(chosen()).toEqual([at("items"), at("items") + 5]);
    press("Tab");

    expect(chosen()).toEqual([area().value.length, area().value.length]);
    press("Tab");
    expect(area().value).toMatch(/for row in items:\n {12}$/);
  });

  it("is asked for by Control+Space and goes with Escape", () => {
    press(" ", { ctrlKey: true });
    expect(options()[0]).toBe("prompts");

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

  expect(area().getAttribute("aria-readonly")).toBe("true");
  type("b");
  expect(area().value).toBe("a");
  expect(onChange).not.toHaveBeenCalled();
});
