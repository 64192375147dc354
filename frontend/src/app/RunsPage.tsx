import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Play } from "lucide-react";
import { useDeferredValue, useEffect, useState } from "react";
import { Link } from "wouter";
import { fetchRuns } from "@/api/routes";
import { RunRow } from "@/features/runs/RunRow";
import { isFinal } from "@/live/reducer";
import { useServerCatalog } from "@/session/useServerCatalog";
import { Button } from "@/ui/Button";
import { CONTROL } from "@/ui/control";
import { Empty, Failed, Loading } from "@/ui/States";
import { PageShell } from "./PageShell";

const REFRESH = 2000;
const PAGE = 50;

/** Every run there is, newest first, page by page. */
export function RunsPage() {
  const [filter, setFilter] = useState("");
  const [offset, setOffset] = useState(0);
  const search = useDeferredValue(filter.trim());
  const catalog = useServerCatalog();
  const runs = useQuery({
    queryKey: ["runs", search, offset],
    queryFn: () => fetchRuns({ limit: PAGE, offset, search }),
    placeholderData: keepPreviousData,
    refetchInterval: (query) =>
      query.state.data?.items.some((run) => !isFinal(run.state)) ? REFRESH : 5 * REFRESH,
  });
  const shown = runs.data?.items ?? [];
  const total = runs.data?.total ?? 0;
  useEffect(() => {
    // The last run of the last page was deleted.
    if (offset > 0 && offset >= total && runs.isSuccess) setOffset(Math.max(0, offset - PAGE));
  }, [offset, total, runs.isSuccess]);
  return (
    <PageShell
      title="Runs"
      actions={
        <input
          role="searchbox"
          aria-label="Filter runs"
          placeholder="Filter by name or state"
          className={`${CONTROL} w-64`}
          value={filter}
          onChange={(event) => {
            setFilter(event.target.value);
            setOffset(0);
          }}
        />
      }
    >
      <section
        aria-label="All runs"
        className="overflow-x-auto rounded-3 border border-line bg-surface"
      >
        {runs.isPending ? <Loading label="Loading the runs" rows={5} /> : null}
        {runs.isError && !runs.data ? (
          <Failed
            title="The runs could not be read"
            error={runs.error}
            onRetry={() => void runs.refetch()}
          />
        ) : null}
        {runs.data && total === 0 && search === "" ? (
          <Empty
            icon={<Play size={24} />}
            title="No runs yet"
            action={
              <Link href="/" className="text-accent-text underline">
                Open a loop and press Run
              </Link>
            }
          >
            Runs of the command line appear here as well.
          </Empty>
        ) : null}
        {shown.length > 0 ? (
          <table className="w-full text-sm">
            <thead className="text-left text-muted text-xs">
              <tr className="[&>th]:px-4 [&>th]:py-2 [&>th]:font-medium">
                <th>Run</th>
                <th>State</th>
                <th className="w-56">Step</th>
                <th>Latest</th>
                <th className="text-right">Took</th>
                <th className="text-right">Started</th>
                <th>
                  <span className="sr-only">More</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((run) => (
                <RunRow key={run.id} run={run} catalog={catalog.data ?? null} />
              ))}
            </tbody>
          </table>
        ) : null}
        {runs.data && total === 0 && search !== "" ? (
          <p className="p-4 text-muted text-sm">No run matches “{search}”.</p>
        ) : null}
      </section>
      {total > PAGE ? (
        <nav
          aria-label="Pages of runs"
          className="mt-3 flex items-center justify-end gap-2 text-sm"
        >
          <span className="tabular text-muted">
            {offset + 1} to {Math.min(offset + PAGE, total)} of {total}
          </span>
          <Button disabled={offset === 0} onClick={() => setOffset(offset - PAGE)}>
            Newer
          </Button>
          <Button disabled={offset + PAGE >= total} onClick={() => setOffset(offset + PAGE)}>
            Older
          </Button>
        </nav>
      ) : null}
    </PageShell>
  );
}
