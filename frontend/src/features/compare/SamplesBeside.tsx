import { useQueries } from "@tanstack/react-query";
import { useState } from "react";
import { fetchSamples } from "@/api/routes";
import type { SampleRow } from "@/api/types";
import { formatMetric } from "@/lib/format";
import { Pager } from "@/ui/Pager";
import { samePrompts, textOf } from "./finals";
import type { Compared } from "./useCompared";

const ROWS = 1000;

/** What the runs answered to the same prompt, side by side. */
export function SamplesBeside({ compared }: { compared: readonly Compared[] }) {
  const samples = useQueries({
    queries: compared.map(({ run }) => ({
      queryKey: ["run", run.id, "samples", "newest", run.last_seq],
      queryFn: () => fetchSamples(run.id, null, ROWS),
      staleTime: Number.POSITIVE_INFINITY,
      retry: false,
    })),
  });
  const [place, setPlace] = useState(0);
  if (samples.some((one) => one.isPending)) return null;
  const prompts = samePrompts(samples.map(({ data }) => data?.rows ?? []));
  const shown = prompts[Math.min(place, prompts.length - 1)];
  return (
    <section
      aria-label="Samples of the same prompt"
      className="rounded-2 border border-line bg-surface p-3"
    >
      <div className="mb-2 flex flex-wrap items-center gap-x-3">
        <h2 className="font-medium text-sm">Samples of the same prompt</h2>
        {shown ? (
          <span className="ml-auto flex items-center gap-2 text-muted text-xs">
            <span className="tabular">
              {Math.min(place, prompts.length - 1) + 1} of {prompts.length}
            </span>
            <Pager
              hasPrevious={place > 0}
              hasNext={place < prompts.length - 1}
              onPrevious={() => setPlace(place - 1)}
              onNext={() => setPlace(place + 1)}
            />
          </span>
        ) : null}
      </div>
      {shown ? (
        <>
          <p className="wrap-anywhere max-h-40 overflow-y-auto whitespace-pre-wrap rounded-2 bg-sunken p-2 font-mono text-xs">
            {shown.prompt}
          </p>
          <div className="mt-2 grid grid-cols-[repeat(auto-fit,minmax(min(100%,220px),1fr))] gap-2">
            {compared.map(({ run, color }, at) => (
              <article key={run.id} aria-label={run.name} className="min-w-0">
                <h3 className="flex items-center gap-1.5 text-xs">
                  <span
                    aria-hidden="true"
                    className="size-2.5 shrink-0 rounded-full"
                    style={{ background: color }}
                  />
                  <span className="truncate">{run.name}</span>
                  <span className="tabular ml-auto shrink-0 text-muted">
                    {aboutText(shown.samples[at] ?? null)}
                  </span>
                </h3>
                <p className="wrap-anywhere mt-1 max-h-60 overflow-y-auto whitespace-pre-wrap rounded-2 bg-sunken p-2 font-mono text-xs">
                  {textOf(shown.samples[at]?.completion) || "–"}
                </p>
              </article>
            ))}
          </div>
        </>
      ) : (
        <p className="text-muted text-sm">
          No two of these runs have recorded a sample of the same prompt.
        </p>
      )}
    </section>
  );
}

function aboutText(row: SampleRow | null): string {
  if (row === null) return "no sample";
  const score = row.reward ?? Object.values(row.scores ?? {}).find((one) => one !== null) ?? null;
  const words = score === null ? "" : `, reward ${formatMetric(score)}`;
  return `step ${row.step ?? "–"}${words}`;
}
