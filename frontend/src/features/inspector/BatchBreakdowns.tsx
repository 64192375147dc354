import type { BatchCount } from "@/api/types";
import { deepEqual } from "@/lib/paths";
import { useWhenStill } from "@/state/choosing";
import { useSync } from "@/state/document/context";

/** How prompts become updates, as numbers that multiply out; a line for each phase in which that is different. */
export function BatchBreakdowns({ node }: { node: string }) {
  const all = useWhenStill(useSync((state) => state.check?.plan?.breakdowns)) ?? [];
  const breakdowns = all.filter((breakdown) => breakdown.node === node);
  const [first] = breakdowns;
  if (!first) return null;
  const isOne = breakdowns.every(({ counts }) => deepEqual(counts, first.counts));
  const shown = isOne ? [first] : breakdowns;
  const notes = [...new Set(shown.map(({ note }) => note).filter((note) => note !== ""))];
  return (
    <section aria-label="Batch of a step" className="my-2 rounded-2 bg-sunken px-3 py-2 text-xs">
      {shown.map((breakdown) => (
        <div key={breakdown.phase} className="py-0.5">
          {isOne ? null : <p className="truncate text-muted">{breakdown.phase}</p>}
          <ol className="flex flex-wrap gap-x-3 gap-y-1">
            {breakdown.counts.map((entry) => (
              <Step key={entry.name} entry={entry} />
            ))}
          </ol>
        </div>
      ))}
      {notes.map((note) => (
        <p key={note} className="pt-1 text-muted">
          {note}
        </p>
      ))}
    </section>
  );
}

/** A number, and by what it came of the one before. */
function Step({ entry: { sign, by, of, count, name } }: { entry: BatchCount }) {
  return (
    <li className="leading-4">
      <span className="tabular flex gap-1.5">
        {sign === "" ? null : (
          <span className="text-muted" title={`${sign} ${short(by)} ${of}`}>
            {sign} {short(by)}
            <span className="sr-only"> {of}</span>
          </span>
        )}
        <b className="font-semibold">{short(count)}</b>
      </span>
      <span className="text-muted">{count === 1 ? oneOf(name) : name}</span>
    </li>
  );
}

/** "micro-batches" → "micro-batch". */
function oneOf(name: string): string {
  return name.replace(/(?<=ch)es$|s$/, "");
}

function short(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 1 });
}
