import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { fetchFamily } from "@/api/routes";
import type { Bodies } from "@/api/types";
import { isFinal } from "@/live/reducer";
import { RichText } from "@/ui/RichText";
import { RunStateChip } from "../list/RunStateChip";
import { outcomeText } from "./outcome";

type FamilyRun = Bodies["FamilyRun"];

const REFRESH = 3000;

/** The runs that were forked from each other, as a tree; nothing for a run without parent and forks. */
export function ForkTree({ run }: { run: string }) {
  const { data } = useQuery({
    queryKey: ["runs", run, "family"],
    queryFn: () => fetchFamily(run),
    refetchInterval: ({ state }) =>
      state.data?.runs.some((one) => !isFinal(one.state)) ? REFRESH : false,
  });
  const [first, ...forks] = data?.runs ?? [];
  if (!first || forks.length === 0) return null;
  return (
    <section aria-label="Forks" className="rounded-2 border border-line bg-surface p-3">
      <h2 className="mb-1 font-medium text-sm">Forks</h2>
      <ul className="text-sm">
        <Branch run={first} forks={forks} current={run} />
      </ul>
    </section>
  );
}

interface BranchProps {
  run: FamilyRun;
  forks: readonly FamilyRun[];
  /** Id of the run whose page this is. */
  current: string;
}

function Branch({ run, forks, current }: BranchProps) {
  const below = forks.filter(({ parent }) => parent === run.run);
  return (
    <li>
      <div className="flex flex-wrap items-center gap-x-2 gap-y-0.5 py-1">
        {run.run === current ? (
          <b aria-current="page" className="min-w-0 truncate font-medium" title={run.run}>
            {run.name}
          </b>
        ) : (
          <Link
            href={`/runs/${encodeURIComponent(run.run)}`}
            className="min-w-0 truncate text-accent-text underline"
            title={run.run}
          >
            {run.name}
          </Link>
        )}
        <RunStateChip state={run.state} />
        <span className="tabular text-muted text-xs">{placeText(run)}</span>
        <span className="tabular ml-auto text-xs" title={run.outcome.metric ?? undefined}>
          {outcomeText(run.outcome)}
        </span>
      </div>
      {run.changes.length > 0 ? (
        <ul aria-label={`Changes of ${run.name}`} className="mb-1 text-muted text-xs">
          {run.changes.map((words) => (
            <li key={words} className="wrap-anywhere">
              <RichText text={words} />
            </li>
          ))}
        </ul>
      ) : null}
      {below.length > 0 ? (
        <ul className="ml-2 border-line border-l pl-3">
          {below.map((fork) => (
            <Branch key={fork.run} run={fork} forks={forks} current={current} />
          ))}
        </ul>
      ) : null}
    </li>
  );
}

function placeText({ from_step: from, step }: FamilyRun): string {
  if (from === null) return step === null ? "" : `to step ${step}`;
  return step === null || step <= from ? `from step ${from}` : `from step ${from} to ${step}`;
}
