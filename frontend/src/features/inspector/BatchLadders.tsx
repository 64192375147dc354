import { Fragment } from "react";
import { type Ladder, type Rung, useLadders } from "@/document/ladder";

/** How prompts become updates, as numbers that multiply out; a line for each phase in which that is different. */
export function BatchLadders({ node }: { node: string }) {
  const ladders = useLadders(node);
  const [first] = ladders;
  if (!first) return null;
  const isOne = ladders.every((one) => said(one) === said(first));
  return (
    <section aria-label="Batch of a step" className="my-2 rounded-2 bg-sunken px-3 py-2">
      {(isOne ? [first] : ladders).map((ladder) => (
        <div key={ladder.phase} className="py-0.5">
          {isOne ? null : <p className="truncate text-muted text-xs">{ladder.phase}</p>}
          <ol className="flex flex-wrap items-start gap-x-2 gap-y-1 text-xs">
            {ladder.rungs.map((rung) => (
              <Step key={rung.name} rung={rung} isExact={ladder.is_exact} />
            ))}
          </ol>
          {ladder.note ? <p className="text-muted text-xs">{ladder.note}</p> : null}
        </div>
      ))}
    </section>
  );
}

function Step({ rung, isExact }: { rung: Rung; isExact: boolean }) {
  return (
    <Fragment>
      {rung.sign === "" ? null : (
        <li className="text-muted" title={`${rung.sign} ${short(rung.by)} ${rung.of}`}>
          {rung.sign} {short(rung.by)}
          <span className="sr-only"> {rung.of}</span>
        </li>
      )}
      <li className="leading-4">
        <b className="tabular block font-semibold">
          {isExact ? "" : "≈ "}
          {short(rung.count)}
        </b>
        <span className="text-muted">{rung.name}</span>
      </li>
    </Fragment>
  );
}

function said({ rungs, note }: Ladder): string {
  return JSON.stringify([rungs, note]);
}

/** At most one decimal. */
function short(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 1 });
}
