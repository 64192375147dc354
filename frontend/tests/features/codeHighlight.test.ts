/** Colours of pieces are those of the whole, whatever is changed in whichever place. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { highlightText } from "prism-code-editor/prism";
import { describe, expect, it } from "vitest";
import { htmlOf, MOST_IN_COLOUR, type Piece, piecesOf } from "@/ui/code/highlight";

const PRESETS = join(process.cwd(), "../presets/loops");
const yaml = readdirSync(PRESETS)
  .filter((name) => name.endsWith(".yaml"))
  .map((name) => readFileSync(join(PRESETS, name), "utf-8"))
  .join("");
const python = `"""Rewards.

def not_code(): '''
"""
import re  # """ no text


@cached
def reward(prompts: list[str], *, weight=1.0):
    '''What it says; a # is no comment here.
    class NotOne: pass
    '''
    total = f"{sum(x for x in prompts):>8}" + 'it\\'s' + "\\
on two lines"
    for prompt in prompts:  # each
        yield len(prompt) * 0x1F if True else None

`.repeat(12);

function shown(pieces: readonly Piece[]): string[] {
  return pieces.flatMap((piece) => {
    const lines = htmlOf(piece).slice(0, piece.lines);
    expect(lines).toHaveLength(piece.lines);
    return lines;
  });
}

/** The same numbers for everybody, from 0 to 1. */
function numbers(seed: number) {
  let state = seed;
  return () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state / 2147483648;
  };
}

describe.each([
  ["yaml", yaml, ["\n", "  - x: true\n", "a: |\n", "'", "# ", "{", "  kept: 3e-4", "\n\n\n"]],
  ["python", python, ["\n", '"""', "'''", "'", "#", "def f():\n    ", "\\", "('"]],
])("%s in pieces", (language, text, inserted) => {
  it("has more than one, and the colours that the whole has", () => {
    const pieces = piecesOf(text, language, []);

    expect(pieces.length).toBeGreaterThan(3);
    expect(shown(pieces)).toEqual(highlightText(text, language).split("\n"));
  });

  it("has them after each of many changes, of which each is read in its place only", () => {
    const next = numbers(7);
    let now = text;
    let pieces = piecesOf(now, language, []);
    let fresh = 0;
    for (let change = 0; change < 40; change += 1) {
      const from = Math.floor(next() * now.length);
      const to = Math.min(now.length, from + Math.floor(next() * 40));
      const put = inserted[Math.floor(next() * inserted.length)] ?? "";
      const before = new Set(pieces);
      const edited = now.slice(0, from) + put + now.slice(to);
      const after = piecesOf(edited, language, pieces);
      expect(shown(after)).toEqual(shown(piecesOf(edited, language, [])));
      fresh += after.filter((piece) => !before.has(piece)).length / after.length;
      // Half of them are taken back, so that the text keeps its shape.
      if (change % 2 === 0) {
        now = edited;
        pieces = after;
      }
    }
    expect(fresh / 40).toBeLessThan(0.5);
  });
});

it.each([
  ["", 1],
  ["\n", 2],
  ["a", 1],
  ["a\n", 2],
  [`${"a: b\n".repeat(200)}`, 201],
])("every line of %j is in one piece", (text, count) => {
  for (const before of ["", "a", "a\n", "b\na\n", `${"a: b\n".repeat(100)}`]) {
    const pieces = piecesOf(text, "yaml", piecesOf(before, "yaml", []));

    expect(pieces.map((piece) => piece.text).join("")).toBe(text);
    expect(shown(pieces)).toHaveLength(count);
  }
});

it("a key in a long text is read with the lines beside it", () => {
  const long = yaml.repeat(Math.ceil(MOST_IN_COLOUR / 2 / yaml.length));
  const before = piecesOf(long, "yaml", []);
  const at = long.indexOf("\n", long.length / 2);

  const after = piecesOf(`${long.slice(0, at)}x${long.slice(at)}`, "yaml", before);

  expect(after.filter((piece) => !before.includes(piece))).toHaveLength(1);
});

it.each(["|", ">-", "|2+"])("the text below %s goes on below an empty line", (sign) => {
  const text = `code: ${sign}\n\n  import re\n\n\n  def f(rows): #\n\nnext: 1\n`;

  const html = shown(piecesOf(text, "yaml", []));

  expect(html[5]).toBe('<span class="token scalar string">  def f(rows): #</span>');
  expect(html[7]).toContain('<span class="token key');
});

it("a line that is too long has no colours, and those around it have", () => {
  const text = `a: 1\nb: "${"x".repeat(100_000)}"\n${"c: 2\n".repeat(100)}`;

  const html = shown(piecesOf(text, "yaml", []));

  expect(html[1]).not.toContain("<span");
  expect(html.at(-2)).toContain("<span");
});
