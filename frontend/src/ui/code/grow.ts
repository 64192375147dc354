/** What is selected grows to what is around it: word, string, brackets, line, block, all. Pure. */
import { foldEnd, indentOf, lineAt, startsOf } from "./folding";

type Range = readonly [number, number];

/** The smallest part of the text that has more than what is selected; brackets as pairs of where they begin and end. */
export function grown(
  text: string,
  [from, to]: Range,
  pairs: readonly (readonly [Range, Range])[],
) {
  const lines = text.split("\n");
  const starts = startsOf(lines);
  const row = lineAt(starts, from);
  const line = lines[row] ?? "";
  const start = starts[row] ?? 0;
  const endOf = (at: number) => (starts[at] ?? 0) + (lines[at]?.length ?? 0);
  const parts: Range[] = [
    [start + indentOf(line), start + line.trimEnd().length],
    [0, text.length],
  ];
  for (const word of line.matchAll(/[\p{L}\p{N}_]+/gu))
    parts.push([start + word.index, start + word.index + word[0].length]);
  for (const { index, 0: string } of line.matchAll(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g)) {
    const end = start + index + string.length;
    parts.push([start + index + 1, end - 1], [start + index, end]);
  }
  for (const [opening, closing] of pairs)
    parts.push([opening[1], closing[0]], [opening[0], closing[1]]);
  for (let heading = row; heading >= 0; heading -= 1) {
    const last = foldEnd(lines, heading);
    if (last < row) continue;
    const own = (starts[heading] ?? 0) + indentOf(lines[heading] ?? "");
    if (last > heading) parts.push([starts[heading + 1] ?? 0, endOf(last)]);
    parts.push([own, endOf(last)]);
  }
  const around = parts.filter(
    ([start, end]) => start <= from && end >= to && end - start > to - from,
  );
  return around.toSorted(([a, b], [c, d]) => b - a - (d - c))[0] ?? null;
}
