import { useMemo } from "react";
import type { BatchLadder, BatchRung } from "@/api/types";
import { useWhenStill } from "@/state/choosing";
import { useSync } from "@/state/document/context";

export function BatchLadders({ node }: { node: string }) {
  const ladders = useWhenStill(useLadders(node));
  const [first] = ladders;
  if (!first) return null;
  const isOne = ladders.every((one) => said(one) === said(first));
  const shown = isOne ? [first] : ladders;
  const notes = [...new Set(shown.map(({ note }) => note).filter((note) => note !== ""))];
  return (
    <section aria-label="Batch of a step" className="my-2 rounded-2 bg-sunken px-3 py-2 text-xs">
      {shown.map((ladder) => (
        <div key={ladder.phase} className="py-0.5">
          {isOne ? null : <p className="truncate text-muted">{ladder.phase}</p>}
          <ol className="flex flex-wrap gap-x-3 gap-y-1">
            {ladder.rungs.map((rung) => (
              <Step key={rung.name} rung={rung} />
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

function Step({ rung: { sign, by, of, count, name } }: { rung: Rung }) {
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

function said({ rungs }: Ladder): string {
  return JSON.stringify(rungs);
}

function short(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 1 });
}

type Ladder = BatchLadder;
type Rung = BatchRung;

const NONE: readonly Ladder[] = [];

function useLadders(node: string): readonly Ladder[] {
  const ladders = useSync((state) => state.check?.plan?.ladders ?? NONE);
  return useMemo(() => ladders.filter((ladder) => ladder.node === node), [ladders, node]);
}
