import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Play } from "lucide-react";
import { useDeferredValue, useState } from "react";
import { Link } from "wouter";
import { fetchRuns } from "@/api/routes";
import type { RunSummary } from "@/api/types";
import { ChosenBar } from "@/features/runs/list/ChosenBar";
import { ALL_RUNS, RunFilters, type RunWishes } from "@/features/runs/list/RunFilters";
import { RunQueue } from "@/features/runs/list/RunQueue";
import { RunTable, useRunTags } from "@/features/runs/list/RunTable";
import { SweepList } from "@/features/runs/sweep/SweepList";
import { isFinal } from "@/live/reducer";
import { Button } from "@/ui/Button";
import { Pager } from "@/ui/Pager";
import { Empty, Failed, Loading } from "@/ui/States";
import { PageShell } from "./PageShell";

const REFRESH = 2000;
const PAGE = 50;
/** Where a page begins: its cursor, and how many runs come before it. */
interface Begin {
  cursor: string;
  first: number;
}

const FIRST: readonly Begin[] = [{ cursor: "", first: 0 }];

export function RunsPage() {
  const [wishes, setWishes] = useState<RunWishes>(ALL_RUNS);
  const [begins, setBegins] = useState(FIRST);
  const [chosen, setChosen] = useState<ReadonlyMap<string, RunSummary>>(new Map());
  const tags = useRunTags();
  const { cursor = "", first = 0 } = begins.at(-1) ?? {};
  const runs = usePage(wishes, cursor);
  const shown = runs.data?.items ?? [];
  const total = runs.data?.total ?? 0;
  const next = runs.data?.next;
  const isNarrow = wishes.search.trim() !== "" || wishes.state !== "" || wishes.tag !== "";
  const wish = (change: Partial<RunWishes>) => {
    setWishes({ ...wishes, ...change });
    setBegins(FIRST);
  };
  const choose = (run: RunSummary, isChosen: boolean) => {
    const others = [...chosen].filter(([id]) => id !== run.id);
    setChosen(new Map(isChosen ? [...others, [run.id, run]] : others));
  };
  return (
    <PageShell
      title="Runs"
      isWide
      actions={<RunFilters wishes={wishes} tags={tags} onChange={wish} />}
    >
      <RunQueue />
      <SweepList />
      <section
        aria-label="All runs"
        className="overflow-x-auto rounded-3 border border-line bg-surface"
      >
        {runs.isPending ? <Loading label="Loading the runs" rows={5} /> : null}
        {runs.isError && !runs.data ? (
          <Failed
            title="The runs could not be loaded"
            error={runs.error}
            onRetry={() => void runs.refetch()}
          />
        ) : null}
        {runs.data && shown.length === 0 && !isNarrow ? <NoRuns isEnd={first > 0} /> : null}
        {shown.length > 0 ? (
          <RunTable runs={shown} chosen={chosen} onChoose={choose} onTag={(tag) => wish({ tag })} />
        ) : null}
        {runs.data && shown.length === 0 && isNarrow ? (
          <p className="flex items-center gap-3 p-4 text-muted text-sm">
            No run matches.
            <Button size="small" onClick={() => wish(ALL_RUNS)}>
              Show all runs
            </Button>
          </p>
        ) : null}
      </section>
      {next !== undefined || first > 0 ? (
        <nav
          aria-label="Pages of runs"
          className="mt-3 flex items-center justify-end gap-2 text-sm"
        >
          <span className="tabular text-muted">
            {shown.length === 0 ? "0" : `${first + 1} to ${first + shown.length}`} of {total}
          </span>
          <Pager
            hasPrevious={first > 0}
            hasNext={next !== undefined}
            onPrevious={() => setBegins(begins.slice(0, -1))}
            onNext={() =>
              setBegins([...begins, { cursor: next ?? "", first: first + shown.length }])
            }
          />
        </nav>
      ) : null}
      <ChosenBar runs={[...chosen.values()]} onClear={() => setChosen(new Map())} />
    </PageShell>
  );
}

function usePage(wishes: RunWishes, cursor: string) {
  const asked = useDeferredValue(wishes);
  const query = {
    limit: PAGE,
    sort: asked.sort,
    search: asked.search.trim(),
    ...(asked.state === "" ? {} : { state: asked.state }),
    ...(asked.tag === "" ? {} : { tag: asked.tag }),
    ...(cursor === "" ? {} : { cursor }),
  };
  return useQuery({
    queryKey: ["runs", "page", query],
    queryFn: () => fetchRuns(query),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      state.data?.items.some((run) => !isFinal(run.state)) ? REFRESH : 5 * REFRESH,
  });
}

function NoRuns({ isEnd }: { isEnd: boolean }) {
  if (isEnd) return <p className="p-4 text-muted text-sm">There are no more runs.</p>;
  return (
    <Empty
      icon={<Play size={24} />}
      title="No runs yet"
      action={
        <Link href="/" className="text-accent-text underline">
          Open a loop and press Run
        </Link>
      }
    >
      Runs started from the command line appear here as well.
    </Empty>
  );
}
