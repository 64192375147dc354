/** What is offered while Python is typed, and what cannot be read of it. Knows names and no loop. */
import {
  autocompletion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { globalCompletion, localCompletionSource } from "@codemirror/lang-python";
import { syntaxTree } from "@codemirror/language";
import type { Diagnostic as Lint } from "@codemirror/lint";
import type { EditorState, Extension } from "@codemirror/state";

export interface Word {
  label: string;
  /** Beside it in the list. */
  detail: string;
  help?: string;
}

export function completePython(words: () => readonly Word[]): Extension {
  return autocompletion({
    icons: false,
    override: [(at) => offered(at, words()), localCompletionSource, globalCompletion],
  });
}

function offered(at: CompletionContext, words: readonly Word[]): CompletionResult | null {
  const typed = at.matchBefore(/\w*/);
  if (!typed || (typed.from === typed.to && !at.explicit)) return null;
  return {
    from: typed.from,
    options: words.map(({ label, detail, help }) => ({
      label,
      detail,
      boost: 10,
      ...(help ? { info: help } : {}),
    })),
    validFor: /^\w*$/,
  };
}

/** The first place that is no Python; what follows it is often right. */
export function unread(state: EditorState): Lint[] {
  let first: Lint | null = null;
  syntaxTree(state).iterate({
    enter: ({ type, from, to }) => {
      if (!type.isError || first !== null) return;
      const line = state.doc.lineAt(from);
      const end = Math.max(to, Math.min(line.to, from + 1));
      first = {
        from: end > from ? from : Math.max(line.from, from - 1),
        to: end,
        severity: "error",
        message: `Line ${line.number} is no Python that can be read.`,
      };
    },
  });
  return first === null || state.doc.length === 0 ? [] : [first];
}
