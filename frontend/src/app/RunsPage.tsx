import { useQuery } from "@tanstack/react-query";
import { Play } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import { fetchRuns } from "@/api/routes";
import { RunRow } from "@/features/runs/RunRow";
import { isFinal } from "@/live/reducer";
import { useServerCatalog } from "@/session/useServerCatalog";
import { CONTROL } from "@/ui/control";
import { Empty, Failed, Loading } from "@/ui/States";
import { PageShell } from "./PageShell";

const REFRESH = 2000;

/** Every run there is, newest first. */
export function RunsPage() {
  const [filter, setFilter] = useState("");
  const catalog = useServerCatalog();
  const runs = useQuery({
    queryKey: ["runs"],
    queryFn: fetchRuns,
    refetchInterval: (query) =>
      query.state.data?.some((run) => !isFinal(run.state)) ? REFRESH : 5 * REFRESH,
  });
  const shown = runs.data?.filter((run) =>
    `${run.name} ${run.id} ${run.state}`.toLowerCase().includes(filter.toLowerCase()),
  );
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
          onChange={(event) => setFilter(event.target.value)}
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
        {runs.data?.length === 0 ? (
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
        {shown && shown.length > 0 ? (
          <table className="w-full text-sm">
            <thead className="text-left text-muted text-xs">
              <tr className="[&>th]:px-4 [&>th]:py-2 [&>th]:font-medium">
                <th>Run</th>
                <th>State</th>
                <th className="w-56">Step</th>
                <th>Latest</th>
                <th className="text-right">Took</th>
                <th className="text-right">Started</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((run) => (
                <RunRow key={run.id} run={run} catalog={catalog.data ?? null} />
              ))}
            </tbody>
          </table>
        ) : null}
        {runs.data && runs.data.length > 0 && shown?.length === 0 ? (
          <p className="p-4 text-muted text-sm">No run matches “{filter}”.</p>
        ) : null}
      </section>
    </PageShell>
  );
}
