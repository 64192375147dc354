import { lazy, Suspense } from "react";
import type { Word } from "./code/completePython";
import type { Language, Mark } from "./code/editor";
import { Loading } from "./States";

export type { Mark };

export interface CodeEditorProps {
  label: string;
  language: Language;
  value: string;
  minHeight?: string;
  isReadonly?: boolean;
  marks?: readonly Mark[];
  words?: readonly Word[];
  goTo?: { line: number; column: number; request: number } | null;
  onChange: (text: string) => void;
}

const CodeMirror = lazy(() =>
  import("./code/CodeMirror").then((module) => ({ default: module.CodeMirror })),
);

export function CodeEditor(props: CodeEditorProps) {
  return (
    <Suspense fallback={<Loading label="Loading the editor" rows={4} />}>
      <CodeMirror {...props} />
    </Suspense>
  );
}
