import { useMemo, useRef, useState } from "react";
import type { Diagnostic } from "@/api/types";
import { useDocument, useOpenLoop, useSync } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { Button } from "@/ui/Button";
import { CodeEditor } from "@/ui/CodeEditor";

/** The loop as text. Typing changes the graph once the server could read it; the graph changes the text. */
export function YamlPanel() {
  const { sync } = useOpenLoop();
  const text = useDocument((state) => state.text);
  const typed = useSync((state) => state.typedText);
  const broken = useSync((state) => state.brokenText);
  const report = useSync((state) => state.check?.report.diagnostics);
  const shown = typed ?? broken?.text ?? text;
  const goTo = useGoTo(shown);

  const marks = useMemo(() => toMarks(broken?.diagnostics ?? report ?? []), [broken, report]);

  return (
    <div className="flex h-full flex-col">
      {broken ? (
        <div
          role="alert"
          className="flex items-center gap-3 border-line border-b bg-error-soft px-4 py-1.5 text-xs"
        >
          <span className="min-w-0 flex-1 truncate">
            The YAML is invalid, so the graph shows the last valid state.{" "}
            {broken.diagnostics[0]?.message}
          </span>
          <Button size="small" onClick={() => sync?.discardText()}>
            Discard text changes
          </Button>
        </div>
      ) : null}
      <div className="min-h-0 flex-1">
        <CodeEditor
          label="Loop as YAML"
          language="yaml"
          value={shown}
          marks={marks}
          goTo={goTo}
          isReadonly={sync === null}
          onChange={(value) => sync?.typeText(value)}
        />
      </div>
    </div>
  );
}

function toMarks(diagnostics: readonly Diagnostic[]) {
  return diagnostics
    .filter((one) => typeof one.line === "number")
    .map((one) => ({
      line: one.line ?? 1,
      column: one.column ?? null,
      severity: one.severity,
      message: one.hint ? `${one.message}\n${one.hint}` : one.message,
    }));
}

/** Follows problem clicks and newly selected nodes to their place in the text; edits move nothing. */
function useGoTo(text: string) {
  const focus = useSelection((state) => state.focus);
  const [seen] = useState(focus?.request ?? 0);
  const now = useRef(text);
  now.current = text;
  return useMemo(() => {
    if (!focus || focus.request === seen) return null;
    const place = yamlPlace(now.current, focus.node, focus.field);
    return place ? { ...place, request: focus.request } : null;
  }, [focus, seen]);
}

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
