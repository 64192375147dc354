import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { fetchExperiment } from "@/api/routes";
import { Answer } from "@/ui/States";
import { ForkTree } from "../family/ForkTree";
import { Answers } from "./Answers";
import { mainResult } from "./answers";
import { ResultChart } from "./ResultChart";

/** What came of a run that has ended, beside its graph. */
export function RunResult({ run, attempt }: { run: string; attempt: number }) {
  const query = useQuery({
    queryKey: ["run", run, "experiment", attempt],
    queryFn: () => fetchExperiment(run),
  });
  return (
    <section aria-label="Result" className="h-full overflow-y-auto px-3 pb-3">
      <Answer query={query} loading="Loading the result" failed="There is no result">
        {(found) => {
          const main = mainResult(found);
          return (
            <>
              {main ? <ResultChart result={main} /> : null}
              <Answers found={found} />
              <div className="mt-2">
                <ForkTree run={run} />
              </div>
              <p className="mt-2 text-sm">
                <Link
                  href={`/runs/${encodeURIComponent(run)}/report`}
                  className="text-accent-text underline"
                >
                  The whole report
                </Link>
              </p>
            </>
          );
        }}
      </Answer>
    </section>
  );
}
