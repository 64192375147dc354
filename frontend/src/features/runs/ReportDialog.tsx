import { useQuery } from "@tanstack/react-query";
import { fetchReport } from "@/api/routes";
import { formatSeconds } from "@/lib/format";
import { Dialog } from "@/ui/Dialog";
import { Failed, Loading } from "@/ui/States";
import { readReport, type StageTimes } from "./report";

interface ReportDialogProps {
  run: string;
  isOpen: boolean;
  onClose: () => void;
}

/** What the estimate said of a run, beside what it took. */
export function ReportDialog({ run, isOpen, onClose }: ReportDialogProps) {
  const query = useQuery({
    queryKey: ["run", run, "report"],
    queryFn: () => fetchReport(run),
    enabled: isOpen,
  });
  return (
    <Dialog
      title="Report"
      description="Times of a stage as they were predicted, and as they were measured."
      isOpen={isOpen}
      onClose={onClose}
      width="max-w-2xl"
    >
      {query.isPending ? <Loading label="Loading the report" /> : null}
      {query.error ? (
        <Failed
          title="There is no report"
          error={query.error}
          onRetry={() => void query.refetch()}
        />
      ) : null}
      {query.data ? <Times rows={readReport(query.data)} /> : null}
    </Dialog>
  );
}

function Times({ rows }: { rows: readonly StageTimes[] }) {
  const longest = Math.max(
    0,
    ...rows.map((row) => Math.max(row.predicted ?? 0, row.measured ?? 0)),
  );
  return (
    <table className="w-full text-sm">
      <thead>
        <tr className="text-left text-muted text-xs">
          <th className="py-1 font-medium">Stage</th>
          <th className="py-1 text-right font-medium">Predicted</th>
          <th className="py-1 text-right font-medium">Measured</th>
          <th className="py-1 pl-4 font-medium">Measured to predicted</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.stage} className="border-line border-t">
            <th scope="row" className="max-w-56 truncate py-1 text-left font-normal">
              {row.isStep ? <b>{row.stage}</b> : row.stage}
            </th>
            <td className="tabular py-1 text-right text-muted">{formatSeconds(row.predicted)}</td>
            <td className="tabular py-1 text-right">{formatSeconds(row.measured)}</td>
            <td className="py-1 pl-4">
              <span className="flex items-center gap-2">
                <span className="flex w-32 flex-col gap-0.5" aria-hidden="true">
                  <Bar share={(row.predicted ?? 0) / longest} look="bg-line-strong" />
                  <Bar share={(row.measured ?? 0) / longest} look="bg-accent" />
                </span>
                <span className="tabular">{ratioText(row)}</span>
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Bar({ share, look }: { share: number; look: string }) {
  return (
    <span
      className={`h-1 rounded-full ${look}`}
      style={{ width: `${Number.isFinite(share) ? share * 100 : 0}%` }}
    />
  );
}

function ratioText({ predicted, measured }: StageTimes): string {
  if (measured === null) return "did not run";
  if (!predicted) return "not predicted";
  return `× ${(measured / predicted).toPrecision(2)}`;
}
