import { Link } from "wouter";
import { formatMetric } from "@/lib/format";
import { isFinal } from "@/live/reducer";
import { Badge } from "@/ui/Badge";
import { RunStateChip } from "../list/RunStateChip";
import {
  armColor,
  type ControlArm,
  type GroupRun,
  kindTitle,
  type Verdict,
  verdictText,
} from "./arms";

interface ArmsTableProps {
  arms: readonly ControlArm[];
  verdicts: readonly Verdict[];
}

/** The numbers behind the picture: of finished runs alone. */
export function ArmsTable({ arms, verdicts }: ArmsTableProps) {
  return (
    <table aria-label="Means over seeds" className="w-full text-sm">
      <thead>
        <tr className="text-muted text-xs">
          <th className="py-1 text-left font-medium">Arm</th>
          <th className="py-1 pl-3 text-right font-medium">Runs</th>
          <th className="py-1 pl-3 text-right font-medium">Start</th>
          <th className="py-1 pl-3 text-right font-medium">End</th>
          <th className="py-1 pl-3 text-right font-medium">Spread</th>
          <th className="py-1 pl-3 text-right font-medium">Whole loop leads by</th>
          <th className="py-1 pl-3 text-left font-medium">By more than the spread</th>
        </tr>
      </thead>
      <tbody>
        {arms.map((arm, place) => (
          <Row
            key={arm.kind}
            arm={arm}
            color={armColor(place)}
            verdict={verdicts.find(({ kind }) => kind === arm.kind)}
          />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  arm: ControlArm;
  color: string;
  verdict: Verdict | undefined;
}

function Row({ arm, color, verdict }: RowProps) {
  const finished = arm.runs.filter(({ state }) => state === "finished").length;
  return (
    <tr className="border-line border-t">
      <th scope="row" className="py-1.5 text-left font-normal">
        <span className="flex items-center gap-2">
          <span
            aria-hidden="true"
            className="size-2.5 shrink-0 rounded-full"
            style={{ background: color }}
          />
          {kindTitle(arm.kind)}
        </span>
      </th>
      <td className="tabular py-1.5 pl-3 text-right">
        {finished === arm.runs.length ? finished : `${finished} of ${arm.runs.length}`}
      </td>
      <td className="tabular py-1.5 pl-3 text-right">{formatMetric(arm.start)}</td>
      <td className="tabular py-1.5 pl-3 text-right">{formatMetric(arm.end)}</td>
      <td className="tabular py-1.5 pl-3 text-right">{formatMetric(arm.spread)}</td>
      <td className="tabular py-1.5 pl-3 text-right">
        {verdict ? formatMetric(verdict.difference) : ""}
      </td>
      <td className="py-1.5 pl-3">
        {verdict ? (
          <Badge tone={verdict.leads ? "success" : "neutral"}>{verdictText(verdict)}</Badge>
        ) : null}
      </td>
    </tr>
  );
}

/** The runs of all arms, each with its state. */
export function ArmRuns({ arms }: { arms: readonly ControlArm[] }) {
  return (
    <section aria-label="Runs" className="rounded-2 border border-line bg-surface p-3">
      <h2 className="mb-1 font-medium text-sm">Runs</h2>
      <dl className="flex flex-col gap-2 text-sm">
        {arms.map((arm) => (
          <div key={arm.kind}>
            <dt className="text-muted text-xs">{kindTitle(arm.kind)}</dt>
            {arm.runs.map((run) => (
              <dd key={run.run} className="mt-1 flex items-center gap-2">
                <Link
                  href={`/runs/${encodeURIComponent(run.run)}`}
                  className="min-w-0 truncate text-accent-text underline"
                  title={run.name}
                >
                  seed {run.seed}
                </Link>
                <RunStateChip state={run.state} />
                <span className="tabular text-muted text-xs">{progressOf(run)}</span>
              </dd>
            ))}
          </div>
        ))}
      </dl>
    </section>
  );
}

function progressOf({ state, step, steps_total, end }: GroupRun): string {
  if (state === "finished") return formatMetric(end);
  if (isFinal(state) || step === null) return "";
  return steps_total === null ? `step ${step}` : `step ${step} of ${steps_total}`;
}
