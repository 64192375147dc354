import { useQuery } from "@tanstack/react-query";
import { fetchLoopChanges, fetchValueChanges } from "@/api/routes";
import type { Bodies, RunSummary, SpecChange } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { RadioCards } from "@/ui/RadioCards";
import { RichText } from "@/ui/RichText";
import { Answer } from "@/ui/States";

export type Values = Readonly<Bodies["CompareValues"]["set"]>;

interface ForkChangesProps {
  run: Pick<RunSummary, "id" | "loop_id">;
  /** What the new run is to have otherwise; without it, its loop may be that of now. */
  values: Values | undefined;
  isAsNow: boolean;
  onAsNow: (isAsNow: boolean) => void;
}

export function ForkChanges({ run, values, isAsNow, onAsNow }: ForkChangesProps) {
  if (values) return <OfValues id={run.id} values={values} />;
  return <OfLoop run={run} isAsNow={isAsNow} onAsNow={onAsNow} />;
}

function OfValues({ id, values }: { id: string; values: Values }) {
  const query = useQuery({
    queryKey: ["runChanges", id, "values", JSON.stringify(values)],
    queryFn: () => fetchValueChanges(id, values),
    retry: false,
  });
  const failed = "The change is not valid for this loop";
  return (
    <Answer query={query} loading="Comparing the loops" rows={1} failed={failed}>
      {({ changes }) =>
        changes.length === 0 ? (
          <p className="text-muted">The loop already has this value.</p>
        ) : (
          <ChangeList label="What will differ" changes={changes} />
        )
      }
    </Answer>
  );
}

function OfLoop({ run, isAsNow, onAsNow }: Omit<ForkChangesProps, "values">) {
  const { data } = useLoopChanges(run.id, run.loop_id);
  const changes = data?.changes ?? [];
  if (changes.length === 0) return null;
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
            help: `${formatPlural(changes.length, "change")} since this run`,
          },
        ]}
        onChange={(value) => onAsNow(value === "now")}
      />
      {isAsNow ? <ChangeList label="What will differ" changes={changes} /> : null}
    </>
  );
}

export function useLoopChanges(run: string, loop: string | null, isAsked = true) {
  return useQuery({
    queryKey: ["runChanges", run, "loop", loop],
    queryFn: () => fetchLoopChanges(run, loop ?? ""),
    enabled: isAsked && loop !== null,
    staleTime: 0,
    retry: false,
  });
}

export function ChangeList({ label, changes }: { label: string; changes: readonly SpecChange[] }) {
  return (
    <ul aria-label={label} className="flex flex-col gap-1 text-xs">
      {changes.map((change) => (
        <li key={change.path} className="wrap-anywhere rounded-1 bg-sunken px-2 py-1">
          <RichText text={change.words} />
        </li>
      ))}
    </ul>
  );
}
