import {
  autocompletion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { globalCompletion, localCompletionSource } from "@codemirror/lang-python";
import type { Extension } from "@codemirror/state";

export interface Word {
  label: string;
  detail: string;
  help?: string;
}

export function completePython(words: () => readonly Word[]): Extension {
  return autocompletion({
    icons: false,
    override: [(context) => complete(context, words()), localCompletionSource, globalCompletion],
  });
}

function complete(context: CompletionContext, words: readonly Word[]): CompletionResult | null {
  const typed = context.matchBefore(/\w*/);
  if (!typed || (typed.from === typed.to && !context.explicit)) return null;
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
