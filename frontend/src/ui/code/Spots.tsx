import type { CodeState } from "./CodeModel";
import { lineAt } from "./folding";

/** What is set off in the text: words of which something is said, and ends of lines that hide others. */
export function Spots({ state }: { state: CodeState }) {
  const { lines, shown, folds, marks } = state;
  return (
    <div className="code-spots" aria-hidden="true">
      {marks.map(({ from, to, severity }, said) => {
        const line = lineAt(shown.starts, from);
        const start = shown.starts[line] ?? 0;
        const row = lineAt(shown.lines, line);
        if (shown.lines[row] !== line) return null;
        const text = lines[line] ?? "";
        return (
          <div key={`${from} ${said}`} className="code-spot" style={{ top: `${row}lh` }}>
            {text.slice(0, from - start)}
            <span className={`code-said-${severity}`} data-said={said}>
              {text.slice(from - start, to - start) || " "}
            </span>
          </div>
        );
      })}
      {[...folds].map((line) => (
        <div key={line} className="code-spot" style={{ top: `${lineAt(shown.lines, line)}lh` }}>
          {lines[line]}
          <span className="code-folded">…</span>
        </div>
      ))}
    </div>
  );
}
