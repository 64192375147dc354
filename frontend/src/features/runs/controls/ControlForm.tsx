import { useQuery } from "@tanstack/react-query";
import { FlaskConical } from "lucide-react";
import { useId, useState } from "react";
import { fetchControlChoices, startControl } from "@/api/routes";
import type { Bodies } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { useAttempt } from "@/state/useAttempt";
import { Button } from "@/ui/Button";
import { CONTROL } from "@/ui/control";
import { RadioCards } from "@/ui/RadioCards";
import { Answer } from "@/ui/States";
import { Switch } from "@/ui/Switch";
import { Changes } from "../start/ForkChanges";
import { withTrust } from "../start/TrustDialog";
import { type ControlKind, kindTitle } from "./arms";

const MOST_SEEDS = 20;
type Choices = Bodies["ControlChoices"];

/** What to leave out, over how many seeds. */
export function ControlForm({ run }: { run: string }) {
  const query = useQuery({
    queryKey: ["controls", run, "choices"],
    queryFn: () => fetchControlChoices(run),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  return (
    <section aria-label="New control" className="rounded-2 border border-line bg-surface p-3">
      <h2 className="mb-1 font-medium text-sm">Run a control</h2>
      <Answer query={query} loading="Making the controls" rows={5} failed="There is no control">
        {(choices) => <Fields run={run} choices={choices} />}
      </Answer>
    </section>
  );
}

function Fields({ run, choices }: { run: string; choices: Choices }) {
  const offered = choices.choices.filter(({ has }) => has);
  const others = choices.choices.filter(({ has }) => !has);
  const [kind, setKind] = useState<ControlKind | null>(offered[0]?.kind ?? null);
  const [seeds, setSeeds] = useState("3");
  const [full, setFull] = useState(true);
  const { isBusy, attempt } = useAttempt("controls");
  const fullId = useId();
  const count = Number(seeds);
  const isCount = Number.isInteger(count) && count >= 1 && count <= MOST_SEEDS;
  const chosen = offered.find((choice) => choice.kind === kind);
  const start = () =>
    attempt(async () => {
      if (kind === null) return;
      await withTrust((trust) =>
        startControl(run, { kind, seeds: count, full, trust, force: false }),
      );
    }, "The control was not started.");
  return (
    <form
      className="flex flex-col gap-3 text-sm"
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      {chosen === undefined ? (
        <p>This loop has no control.</p>
      ) : (
        <>
          <RadioCards
            legend={`What is left out for ${choices.learner}`}
            value={chosen.kind}
            options={offered.map((choice) => ({
              value: choice.kind,
              title: kindTitle(choice.kind),
              help: plain(choice.says),
            }))}
            onChange={setKind}
          />
          <details className="text-xs">
            <summary className="cursor-pointer text-muted">
              {formatPlural(chosen.changes.length, "change")} to the loop
            </summary>
            <div className="mt-1 max-h-60 overflow-y-auto">
              <Changes label="What will differ" changes={chosen.changes} />
            </div>
          </details>
          <label className="flex items-center gap-3">
            <span className="w-24 text-muted">Seeds</span>
            <input
              inputMode="numeric"
              className={`${CONTROL} tabular w-20`}
              value={seeds}
              aria-invalid={!isCount || undefined}
              onChange={(event) => setSeeds(event.target.value)}
            />
            {isCount ? null : <span className="text-error text-xs">1 to {MOST_SEEDS}</span>}
          </label>
          <div className="flex items-center gap-3">
            <label htmlFor={fullId} className="w-24 text-muted">
              Whole loop too
            </label>
            <Switch id={fullId} isOn={full} onChange={setFull} />
          </div>
          <Button
            type="submit"
            look="primary"
            icon={<FlaskConical size={14} />}
            disabled={isBusy || !isCount || choices.metric === null}
            className="self-start"
          >
            {isBusy ? "Queueing" : `Run over ${formatPlural(isCount ? count : 0, "seed")}`}
          </Button>
          {choices.metric === null ? (
            <p className="text-warning text-xs">
              Nothing measures this learner: add an evaluation to the loop.
            </p>
          ) : (
            <p className="text-muted text-xs">
              Runs that have finished are not repeated. The queue takes one after another.
            </p>
          )}
        </>
      )}
      {others.length > 0 ? (
        <details className="text-xs">
          <summary className="cursor-pointer text-muted">Not for this loop</summary>
          <ul className="mt-1 flex flex-col gap-1">
            {others.map((choice) => (
              <li key={choice.kind} className="wrap-anywhere">
                <b className="font-medium">{kindTitle(choice.kind)}</b>: {plain(choice.says)}
              </li>
            ))}
          </ul>
        </details>
      ) : null}
    </form>
  );
}

/** Texts of the service mark names with backticks, which a radio's description does not show. */
function plain(text: string): string {
  return text.replaceAll("`", "");
}
