import { useQuery } from "@tanstack/react-query";
import { fetchRunTags } from "@/api/routes";
import type { RunSummary } from "@/api/types";
import { useServerCatalog, useSparks } from "@/state/queries";
import { MAX_COMPARED } from "./ChosenBar";
import { RunRow } from "./RunRow";

interface RunTableProps {
  runs: readonly RunSummary[];
  chosen: ReadonlyMap<string, RunSummary>;
  onChoose: (run: RunSummary, isChosen: boolean) => void;
  onTag: (tag: string) => void;
}

export function useRunTags(): readonly string[] {
  const tags = useQuery({ queryKey: ["runs", "tags"], queryFn: fetchRunTags });
  return tags.data ?? [];
}

export function RunTable({ runs, chosen, onChoose, onTag }: RunTableProps) {
  const catalog = useServerCatalog().data ?? null;
  const sparks = useSparks(runs, catalog);
  const tags = useRunTags();
  const isFull = chosen.size >= MAX_COMPARED;
  return (
    <table className="w-full text-sm">
      <thead className="text-left text-muted text-xs">
        <tr className="[&>th]:px-3 [&>th]:py-2 [&>th]:font-medium">
          <th>
            <span className="sr-only">Choose</span>
          </th>
          <th>Run</th>
          <th>State</th>
          <th className="w-32">Step</th>
          <th className="w-60">Progress</th>
          <th className="text-right">Took</th>
          <th className="text-right">Started</th>
          <th>
            <span className="sr-only">More</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <RunRow
            key={run.id}
            run={run}
            catalog={catalog}
            spark={sparks.get(run.id)}
            tags={tags}
            isChosen={chosen.has(run.id)}
            refusal={
              isFull && !chosen.has(run.id) ? `${MAX_COMPARED} runs are chosen, the maximum` : null
            }
            onChoose={(isChosen) => onChoose(run, isChosen)}
            onTag={onTag}
          />
        ))}
      </tbody>
    </table>
  );
}
