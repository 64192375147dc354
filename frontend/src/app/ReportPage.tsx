import { useQuery } from "@tanstack/react-query";
import { Copy, Download, Printer } from "lucide-react";
import { toast } from "sonner";
import { Link } from "wouter";
import { ApiError } from "@/api/client";
import { fetchExperiment, fetchExperimentText, fetchReport } from "@/api/routes";
import { ForkTree } from "@/features/runs/family/ForkTree";
import { Answers } from "@/features/runs/report/Answers";
import type { Experiment } from "@/features/runs/report/answers";
import { ReportBody, Section } from "@/features/runs/report/ReportBody";
import { download } from "@/lib/download";
import { useAttempt } from "@/state/useAttempt";
import { Button } from "@/ui/Button";
import { PageShell, Unopened } from "./PageShell";

/** A run as an experiment, to read, to print and to pass on. */
export function ReportPage({ id }: { id: string }) {
  const query = useQuery({
    queryKey: ["run", id, "experiment"],
    queryFn: () => fetchExperiment(id),
    staleTime: 0,
  });
  const measured = useQuery({
    queryKey: ["run", id, "report"],
    queryFn: () => fetchReport(id).catch(noneYet),
  });
  if (!query.data) {
    return (
      <Unopened
        title="Run"
        href="/runs"
        all="All runs"
        error={query.error}
        onRetry={() => void query.refetch()}
      >
        Its folder may have been moved or deleted.
      </Unopened>
    );
  }
  const found = query.data;
  return (
    <PageShell title={`Report of ${found.run}`} actions={<Actions found={found} />}>
      <div className="flex flex-col gap-3">
        {found.description ? <p className="text-muted text-sm">{found.description}</p> : null}
        <Section title={`${found.loop}, seed ${found.seed}: ${found.state}`}>
          <Answers found={found} />
        </Section>
        <ForkTree run={found.run} />
        <ReportBody found={found} measured={measured.data ?? null} />
      </div>
    </PageShell>
  );
}

/** A run writes its report when it ends. */
function noneYet(error: unknown): null {
  if (error instanceof ApiError && error.status === 404) return null;
  throw error;
}

function Actions({ found }: { found: Experiment }) {
  const { isBusy, attempt } = useAttempt();
  const copy = () =>
    attempt(async () => {
      await navigator.clipboard.writeText(await fetchExperimentText(found.run));
      toast.success("The report is on the clipboard as Markdown.");
    }, "The report was not copied.");
  const keep = () =>
    attempt(async () => {
      download(`${found.run}.md`, await fetchExperimentText(found.run));
    }, "The report was not downloaded.");
  return (
    <div className="flex flex-wrap items-center gap-2 print:hidden">
      <Link
        href={`/runs/${encodeURIComponent(found.run)}`}
        className="mr-1 text-accent-text text-sm underline"
      >
        The run
      </Link>
      <Button icon={<Copy size={14} />} disabled={isBusy} onClick={() => void copy()}>
        Copy as Markdown
      </Button>
      <Button icon={<Download size={14} />} disabled={isBusy} onClick={() => void keep()}>
        Download
      </Button>
      <Button icon={<Printer size={14} />} onClick={() => window.print()}>
        Print
      </Button>
    </div>
  );
}
