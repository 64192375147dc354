/**
 * Where a node stands in the text, found by its indentation. Good enough to scroll there; the server's
 * line numbers are used wherever there are any. Pure.
 */
export function yamlPlace(
  text: string,
  node: string | null,
  field: string | null,
): { line: number; column: number } | null {
  const lines = text.split("\n");
  const path =
    node === null ? (field ?? "").split(".") : ["nodes", node, ...(field ?? "").split(".")];
  let line = -1;
  let indent = -1;
  for (const key of path) {
    if (key === "") break;
    const next = findKey(lines, key, line + 1, indent);
    if (next < 0) break;
    line = next;
    indent = indentOf(lines[line] ?? "");
  }
  if (line < 0) return null;
  return { line: line + 1, column: indentOf(lines[line] ?? "") + 1 };
}

function findKey(
  lines: readonly string[],
  key: string,
  start: number,
  parentIndent: number,
): number {
  for (let index = start; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    if (line.trim() === "" || line.trim().startsWith("#")) continue;
    if (indentOf(line) <= parentIndent) return -1;
    if (line.trimStart().startsWith(`${key}:`)) return index;
  }
  return -1;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}
