import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { ChevronDown, ChevronUp, X } from "lucide-react";
import { Link } from "wouter";
import { changeRun, fetchRuns, moveRun, stopRun } from "@/api/routes";
import type { RunSummary } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { useAttempt } from "@/state/useAttempt";
import { IconButton } from "@/ui/IconButton";
import { Select } from "@/ui/Select";

const REFRESH = 2000;
const PRIORITIES = [
  { value: "10", label: "High" },
  { value: "0", label: "Normal" },
  { value: "-10", label: "Low" },
];

export function RunQueue() {
  const queue = useQuery({
    queryKey: ["runs", "queue"],
    queryFn: () => fetchRuns({ state: "queued", limit: 200 }),
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH,
  });
  const waiting = (queue.data?.items ?? []).toSorted((a, b) => (a.place ?? 0) - (b.place ?? 0));
  if (waiting.length === 0) return null;
  return (
    <section
      aria-label="Queue"
      className="mb-4 overflow-hidden rounded-3 border border-line bg-surface"
    >
      <h2 className="flex items-baseline gap-2 border-line border-b px-4 py-2 font-semibold text-sm">
        Queue
        <span className="font-normal text-muted text-xs">
          {formatPlural(waiting.length, "run")}, started one after the other
        </span>
      </h2>
      <ol>
        {waiting.map((run, place) => (
          <Waiting
            key={run.id}
            run={run}
            place={place + 1}
            earlier={waiting[place - 1]?.id}
            later={place < waiting.length - 1 ? (waiting[place + 2]?.id ?? null) : undefined}
          />
        ))}
      </ol>
    </section>
  );
}

interface WaitingProps {
  run: RunSummary;
  place: number;
  /** Before which run it would start instead, `null` at the end; undefined: it is the first or the last. */
  earlier: string | undefined;
  later: string | null | undefined;
}

function Waiting({ run, place, earlier, later }: WaitingProps) {
  const { isBusy, attempt } = useAttempt("runs");
  const move = (before: string | null | undefined) => {
    if (before !== undefined && !isBusy) void attempt(() => moveRun(run.id, before));
  };
  const known = PRIORITIES.some(({ value }) => value === String(run.priority));
  const other = { value: String(run.priority), label: `Priority ${run.priority}` };
  return (
    <li className="flex items-center gap-3 border-line border-t px-4 py-1.5 text-sm first:border-t-0">
      <span className="tabular w-5 text-right text-muted text-xs">{place}</span>
      <Link href={`/runs/${run.id}`} className="min-w-0 flex-1 truncate" title={run.id}>
        {run.name}
      </Link>
      <div className="w-28 shrink-0">
        <Select
          label={`Priority of ${run.name}`}
          value={String(run.priority)}
          options={known ? PRIORITIES : [other, ...PRIORITIES]}
          onChange={(priority) =>
            void attempt(() => changeRun(run.id, { priority: Number(priority) }))
          }
        />
      </div>
      <IconButton
        label={`Start ${run.name} earlier`}
        size="small"
        refusal={earlier === undefined ? "It is already the next one" : null}
        onClick={() => move(earlier)}
        icon={<ChevronUp size={16} />}
      />
      <IconButton
        label={`Start ${run.name} later`}
        size="small"
        refusal={later === undefined ? "It is already the last one" : null}
        onClick={() => move(later)}
        icon={<ChevronDown size={16} />}
      />
      <IconButton
        label={`Remove ${run.name} from the queue`}
        size="small"
        onClick={() => void attempt(() => stopRun(run.id))}
        icon={<X size={16} />}
      />
    </li>
  );
}
