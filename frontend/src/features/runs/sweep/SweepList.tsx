import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { fetchSweeps } from "@/api/routes";
import { formatPlural } from "@/lib/format";
import { Ago } from "@/ui/Ago";
import { namesOf } from "./names";

const SHOWN = 5;
const REFRESH = 10_000;

/** The newest sweeps. */
export function SweepList() {
  const { data } = useQuery({
    queryKey: ["runs", "sweeps"],
    queryFn: fetchSweeps,
    refetchInterval: REFRESH,
    retry: false,
  });
  const shown = (data ?? []).slice(0, SHOWN);
  if (shown.length === 0) return null;
  return (
    <section
      aria-label="Sweeps"
      className="mb-4 overflow-hidden rounded-3 border border-line bg-surface"
    >
      <h2 className="border-line border-b px-4 py-2 font-semibold text-sm">Sweeps</h2>
      <ul className="text-sm">
        {shown.map((sweep) => (
          <li
            key={sweep.sweep}
            className="flex flex-wrap items-center gap-x-3 border-line border-t px-4 py-1.5 first:border-t-0"
          >
            <Link
              href={`/sweeps/${encodeURIComponent(sweep.sweep)}`}
              className="min-w-0 truncate font-medium text-accent-text underline"
              title={sweep.sweep}
            >
              {sweep.loop}: {namesOf(sweep.fields).join(", ")}
            </Link>
            <span className="tabular text-muted text-xs">
              {formatPlural(sweep.runs, "run")}
              {sweep.going_on > 0 ? `, ${sweep.going_on} not ended` : ""}
            </span>
            <span className="ml-auto text-muted text-xs">
              <Ago at={sweep.created_at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
