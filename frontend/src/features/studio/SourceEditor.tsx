import { CircleAlert } from "lucide-react";
import { type ReactNode, useMemo } from "react";
import type { SourceScores } from "@/api/types";
import { type CodePlace, codeOf } from "@/catalog/scorers";
import { problemsAt, textMarks } from "@/document/problems";
import type { LoopDocument } from "@/document/types";
import { readPath } from "@/lib/paths";
import { setField } from "@/state/commands/fields";
import { useCatalog, useDocument, useOpenLoop, useSync } from "@/state/document/context";
import { useWords } from "@/state/useWords";
import { Button } from "@/ui/Button";
import { CodeEditor, type Mark } from "@/ui/CodeEditor";
import { Empty } from "@/ui/States";

interface SourceEditorProps {
  node: string | null;
  color: string | undefined;
  said: SourceScores | null;
  asked: LoopDocument | null;
  settings: (node: string) => ReactNode;
}

export function SourceEditor({ node, color, said, asked, settings }: SourceEditorProps) {
  const catalog = useCatalog();
  const data = useDocument((state) => (node === null ? undefined : state.document.nodes[node]));
  if (node === null || !data) {
    return (
      <div className="h-[40%] min-h-40 border-line border-b">
        <Empty title="No source yet">Add one on the left to try it on rows below.</Empty>
      </div>
    );
  }
  const place = codeOf(catalog.kinds[data.kind], data);
  return (
    <section
      aria-label={`Source ${node}`}
      className="flex h-[42%] min-h-48 shrink-0 flex-col border-line border-b"
    >
      <div className="flex h-12 shrink-0 items-center gap-2 border-line border-b bg-surface px-4">
        <span className="size-2.5 rounded-[2px]" style={{ background: color }} />
        <h2 className="font-semibold text-base">{node}</h2>
        <span className="font-mono text-muted text-xs">{place?.path.join(".") ?? "settings"}</span>
        <span className="flex-1" />
        <Words node={node} />
      </div>
      {place === null ? (
        <div className="min-h-0 flex-1 overflow-y-auto bg-surface">{settings(node)}</div>
      ) : (
        <Code
          node={node}
          place={place}
          // What was said of another text is old.
          said={(readPath(asked?.nodes[node], place.path) ?? "") === place.text ? said : null}
        />
      )}
    </section>
  );
}

function Words({ node }: { node: string }) {
  const words = useWords(node);
  if (words.length === 0) return null;
  return (
    <details className="relative text-xs">
      <summary className="cursor-pointer rounded-2 px-2 py-1 text-muted hover:bg-hover">
        Columns
      </summary>
      <ul className="absolute right-0 z-20 mt-1 max-h-64 w-72 overflow-y-auto rounded-2 border border-line bg-raised p-2 shadow-3">
        {words.map(({ label, detail }) => (
          <li key={label} className="flex gap-2 py-0.5">
            <code className="font-mono">{label}</code>
            <span className="truncate text-muted">{detail}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

interface CodeProps {
  node: string;
  place: CodePlace;
  said: SourceScores | null;
}

function Code({ node, place: { path, text, field }, said }: CodeProps) {
  const { store } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const diagnostics = useSync((state) => state.check?.report.diagnostics);
  const words = useWords(node);
  const at = path.join(".");
  const found = useMemo(() => {
    const ofNode = (diagnostics ?? []).filter((problem) => problem.node === node);
    return problemsAt(ofNode, at, true);
  }, [diagnostics, node, at]);
  const marks = useMemo(() => {
    const checked = textMarks(found);
    const isNew = ({ line }: Mark) => !checked.some((mark) => mark.line === line);
    return [...checked, ...marksOf(said).filter(isNew)];
  }, [said, found]);
  const write = (value: string) =>
    store.dispatch(
      setField,
      { node, path, value },
      { group: `code of ${node}`, label: `Edit ${node}` },
    );
  return (
    <>
      <div className="min-h-0 flex-1 bg-surface">
        <CodeEditor
          label={`Code of ${node}`}
          language="python"
          value={text}
          words={words}
          marks={marks}
          isReadonly={isReadonly}
          onChange={write}
        />
      </div>
      {text.trim() === "" && field.starter !== null && !isReadonly ? (
        <div className="border-line border-t bg-surface px-4 py-2">
          <Button size="small" onClick={() => write(field.starter ?? "")}>
            Start with the signature
          </Button>
        </div>
      ) : null}
      {found.map(({ message, hint, code }) => (
        <Told key={`${code} ${message}`}>{[message, hint].filter(Boolean).join(". ")}</Told>
      ))}
      {/* What does not compile is told once. */}
      {found.length > 0 && said?.error ? null : <Problem said={said} />}
    </>
  );
}

function Problem({ said }: { said: SourceScores | null }) {
  if (said === null) return null;
  const [first] = said.failures;
  const line = said.error === null ? first?.line : said.line;
  const count = said.failures.length;
  const why = (said.error ?? first?.message)?.replace(/^[^:]*: /, "");
  return (
    <>
      {why === undefined ? null : (
        <Told>
          {typeof line === "number" ? <b>Line {line}. </b> : null}
          {count > 0 ? `${why} in ${count} of ${said.scores.length} rows` : why}
        </Told>
      )}
      {said.printed === "" ? null : (
        <details className="border-line border-t bg-surface px-4 py-1.5 text-xs">
          <summary className="cursor-pointer text-muted">Printed output</summary>
          <pre className="mt-1 max-h-32 overflow-auto whitespace-pre-wrap font-mono">
            {said.printed}
          </pre>
        </details>
      )}
    </>
  );
}

function Told({ children }: { children: ReactNode }) {
  return (
    <p
      role="status"
      className="flex items-start gap-2 border-line border-t bg-error-soft px-4 py-2 text-error text-sm"
    >
      <CircleAlert size={15} className="mt-0.5 shrink-0" aria-hidden="true" />
      <span className="min-w-0 wrap-anywhere">{children}</span>
    </p>
  );
}

function marksOf(said: SourceScores | null): Mark[] {
  if (said === null) return [];
  const own: { line: number | null; message: string }[] =
    said.error === null ? said.failures : [{ line: said.line, message: said.error }];
  const lines = new Map<number, string>();
  for (const { line, message } of own) {
    if (line !== null && !lines.has(line)) lines.set(line, message);
  }
  return [...lines].map(([line, message]) => ({ line, column: null, severity: "error", message }));
}
