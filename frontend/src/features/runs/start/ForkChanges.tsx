import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { errorMessage } from "@/api/client";
import { fetchChanges, fetchValueChanges } from "@/api/routes";
import type { Bodies, RunSummary, SpecChange } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { RadioCards } from "@/ui/RadioCards";
import { RichText } from "@/ui/RichText";
import { Answer } from "@/ui/States";

export type Values = Readonly<Bodies["CompareValues"]["set"]>;

/** What the new run is to have otherwise, or why it cannot. */
export function useValueChanges(id: string, values: Values) {
  return useQuery({
    queryKey: ["runChanges", id, "values", JSON.stringify(values)],
    queryFn: () => fetchValueChanges(id, values),
    enabled: Object.keys(values).length > 0,
    retry: false,
  });
}

export function ValueChanges({ id, values }: { id: string; values: Values }) {
  const query = useValueChanges(id, values);
  if (query.isError) {
    return (
      <p role="alert" className="wrap-anywhere rounded-2 bg-error-soft px-3 py-1.5 text-error">
        {errorMessage(query.error)}
      </p>
    );
  }
  return (
    <ChangeList label="What will differ" none="The loop already has this value." query={query} />
  );
}

interface LoopChoiceProps {
  run: Pick<RunSummary, "id" | "loop_id">;
  isAsNow: boolean;
  onAsNow: (isAsNow: boolean) => void;
}

/** The loop of the new run: as it was, or as it is now. */
export function LoopChoice({ run, isAsNow, onAsNow }: LoopChoiceProps) {
  const query = useLoopChanges(run.id, run.loop_id);
  const count = query.data?.changes.length ?? 0;
  if (count === 0) return null;
  return (
    <>
      <RadioCards
        legend="Loop of the new run"
        value={isAsNow ? "now" : "then"}
        options={[
          { value: "then", title: "As in this run", help: "Only the starting point differs" },
          {
            value: "now",
            title: "As it is now",
            help: `${formatPlural(count, "change")} since this run`,
          },
        ]}
        onChange={(value) => onAsNow(value === "now")}
      />
      {isAsNow ? <ChangeList label="What will differ" query={query} /> : null}
    </>
  );
}

export function useLoopChanges(run: string, loop: string | null, isAsked = true) {
  return useQuery({
    queryKey: ["runChanges", run, "loop", loop],
    queryFn: () => fetchChanges(run, { loop: loop ?? "" }),
    enabled: isAsked && loop !== null,
    staleTime: 0,
    retry: false,
  });
}

interface ChangeListProps {
  label: string;
  /** What is said where nothing differs, and where the loops were not compared. */
  none?: string;
  failed?: string;
  query: UseQueryResult<{ changes: readonly SpecChange[] }>;
}

export function ChangeList({ label, none = "", failed = "", query }: ChangeListProps) {
  return (
    <Answer query={query} loading="Comparing the loops" rows={2} failed={failed}>
      {({ changes }) =>
        changes.length === 0 ? (
          <p className="text-muted">{none}</p>
        ) : (
          <Changes label={label} changes={changes} />
        )
      }
    </Answer>
  );
}

export function Changes({ label, changes }: { label: string; changes: readonly SpecChange[] }) {
  return (
    <ul aria-label={label} className="flex flex-col gap-1 text-xs">
      {changes.map((change) => (
        <li
          key={`${change.path} ${change.words}`}
          className="wrap-anywhere rounded-1 bg-sunken px-2 py-1"
        >
          <RichText text={change.words} />
        </li>
      ))}
    </ul>
  );
}
