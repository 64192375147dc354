import { useQuery } from "@tanstack/react-query";
import { fetchReport } from "@/api/routes";
import { isOnCpu as isLoopOnCpu } from "@/document/pools";
import { formatBytes, formatRate, formatSeconds } from "@/lib/format";
import { useLive } from "@/live/hooks";
import { useDocument } from "@/state/document/context";
import { Dialog } from "@/ui/Dialog";
import { Failed, Loading } from "@/ui/States";
import { type Compared, errorText, findingOf, memoryOf, ratesOf, timesOf } from "./report";

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
  const isOnCpu = useDocument((state) => isLoopOnCpu(state.document));
  const gauges = useLive("gauges", (live) => live.state.gauges, null);
  return (
    <Dialog
      title="Report"
      description="What was predicted for the run and what was measured, with the error of each prediction."
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
      {query.data ? (
        <div className="flex max-h-[70vh] flex-col gap-5 overflow-y-auto">
          <p className="text-sm">{findingOf(query.data, gauges?.stages)}</p>
          <Part title="Time" rows={timesOf(query.data)} format={formatSeconds} />
          <Part
            title="Tokens a second while at work"
            rows={ratesOf(query.data)}
            format={(rate) => (rate === null ? "–" : formatRate(rate, "tok"))}
          />
          <Part
            title={isOnCpu ? "Memory of a process" : "Memory of a GPU"}
            rows={memoryOf(query.data)}
            format={formatBytes}
          />
        </div>
      ) : null}
    </Dialog>
  );
}

interface PartProps {
  title: string;
  rows: readonly Compared[];
  format: (value: number | null) => string;
}

function Part({ title, rows, format }: PartProps) {
  if (rows.length === 0) return null;
  const largest = Math.max(
    0,
    ...rows.map((row) => Math.max(row.predicted ?? 0, row.measured ?? 0)),
  );
  return (
    <table aria-label={title} className="w-full table-fixed text-sm">
      <thead>
        <tr className="text-left text-muted text-xs">
          <th className="py-1 font-medium">{title}</th>
          <th className="w-24 py-1 text-right font-medium">Predicted</th>
          <th className="w-24 py-1 text-right font-medium">Measured</th>
          <th className="w-60 py-1 pl-4 font-medium">Error</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name} className="border-line border-t">
            <th scope="row" className="truncate py-1 text-left font-normal">
              {row.isStep ? <b>{row.name}</b> : row.name}
            </th>
            <td className="tabular py-1 text-right text-muted">{format(row.predicted)}</td>
            <td className="tabular py-1 text-right">{format(row.measured)}</td>
            <td className="py-1 pl-4">
              <span className="flex items-center gap-2">
                <span className="flex w-24 flex-col gap-0.5" aria-hidden="true">
                  <Bar share={(row.predicted ?? 0) / largest} look="bg-line-strong" />
                  <Bar share={(row.measured ?? 0) / largest} look="bg-muted" />
                </span>
                <span className="tabular">{errorText(row)}</span>
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
