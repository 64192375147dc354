import { useQuery } from "@tanstack/react-query";
import {
  ChartNoAxesColumn,
  ChevronDown,
  Dices,
  FlaskConical,
  GitFork,
  LoaderCircle,
  Pencil,
  RotateCcw,
  RotateCw,
  Square,
} from "lucide-react";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { createLoop, fetchReport, stopRun } from "@/api/routes";
import type { Bodies, RunSummary } from "@/api/types";
import { isOnCpu as isLoopOnCpu } from "@/document/pools";
import { ForkDialog } from "@/features/runs/start/ForkDialog";
import { resumeFrom, runAgain, useStartRun } from "@/features/runs/start/TrustDialog";
import { formatBytes, formatPlural, formatRate, formatSeconds } from "@/lib/format";
import { useLive, useLiveRun, useLiveVersion } from "@/live/hooks";
import { isFinal } from "@/live/reducer";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Menu, MenuItem } from "@/ui/Menu";
import { Answer } from "@/ui/States";
import { kindTitle } from "../controls/arms";
import { type Compared, errorText, findingOf, memoryOf, ratesOf, timesOf } from "./report";

export function RunActions({ onResumed }: { onResumed: () => void }) {
  const live = useLiveRun();
  useLiveVersion("status");
  const { store } = useOpenLoop();
  const { isBusy, attempt, start } = useStartRun();
  const [isForking, setForking] = useState(false);
  const [, navigate] = useLocation();
  if (!live?.run) return null;
  const { run } = live;
  const step = run.step ?? live.state.step ?? 0;
  const isOver = isFinal(run.state);
  const isStopping = run.state === "stopping";
  const hasControls = run.state === "finished" && !run.tags.includes(CONTROL_TAG);
  const label = hasControls ? "max-xl:sr-only" : ""; // where all buttons would be wider than the window

  const edit = async () => {
    const loopId = run.loop_id ?? (await createLoop({ yaml: store.getState().text })).id;
    navigate(`/loops/${loopId}`);
  };
  const resume = async () => {
    const resumed = await resumeFrom(run);
    if (resumed === null) return;
    live.setRun(resumed);
    onResumed();
  };
  return (
    <>
      <Button
        icon={<Pencil size={14} />}
        title={EDIT[run.loop_id ? "saved" : "copy"]}
        onClick={() => void attempt(edit)}
      >
        <span className={label}>{EDIT[run.loop_id ? "saved" : "copy"]}</span>
      </Button>
      {step > 0 ? (
        <Button icon={<GitFork size={14} />} title="Fork" onClick={() => setForking(true)}>
          <span className={label}>Fork</span>
        </Button>
      ) : null}
      <ForkDialog
        run={run}
        best={live.state.checkpoints.findLast((checkpoint) => checkpoint.isBest)?.step}
        isOpen={isForking}
        onClose={() => setForking(false)}
      />
      {isOver && run.state !== "finished" && step > 0 ? (
        <Button
          icon={<RotateCw size={14} />}
          disabled={isBusy}
          onClick={() => void attempt(resume)}
        >
          Resume
        </Button>
      ) : null}
      {hasControls ? (
        <Button
          icon={<FlaskConical size={14} />}
          title="Run the same loop without the part that is said to help, and compare"
          onClick={() => navigate(`/runs/${run.id}/controls`)}
        >
          Run a control
        </Button>
      ) : null}
      {isOver ? (
        <AfterRun run={run} isBusy={isBusy} start={start} />
      ) : (
        <Button
          look="danger"
          disabled={isBusy || isStopping}
          icon={
            isStopping ? (
              <LoaderCircle size={14} className="animate-spin" />
            ) : (
              <Square size={12} fill="currentColor" />
            )
          }
          onClick={() => void attempt(async () => live.setRun(await stopRun(run.id)))}
        >
          {isStopping ? "Stopping" : "Stop"}
        </Button>
      )}
    </>
  );
}

const CONTROL_TAG = "control";
const EDIT = { saved: "Edit loop", copy: "Edit as a loop" };
const SEEDS = 9999;

interface AfterRunProps extends Pick<ReturnType<typeof useStartRun>, "isBusy" | "start"> {
  run: RunSummary;
}

function AfterRun({ run, isBusy, start }: AfterRunProps) {
  const { store } = useOpenLoop();
  const [hasReport, setReport] = useState(false);
  const [seed] = useState(() => 1 + Math.floor(Math.random() * SEEDS));
  const again = (change: { seed?: number }) =>
    start(() => runAgain(run, { yaml: store.getState().text, ...change }));
  return (
    <>
      {run.state !== "failed" || run.started_at !== null ? (
        <Button icon={<ChartNoAxesColumn size={14} />} onClick={() => setReport(true)}>
          Report
        </Button>
      ) : null}
      <Menu
        align="end"
        trigger={
          <Button look="primary" icon={<RotateCcw size={14} />} disabled={isBusy}>
            Run again
            <ChevronDown size={13} aria-hidden="true" />
          </Button>
        }
      >
        <MenuItem icon={<RotateCcw size={14} />} onSelect={() => again({})}>
          With the same seed
        </MenuItem>
        <MenuItem icon={<Dices size={14} />} onSelect={() => again({ seed })}>
          With another seed: {seed}
        </MenuItem>
      </Menu>
      <ReportDialog run={run.id} isOpen={hasReport} onClose={() => setReport(false)} />
    </>
  );
}

interface ReportDialogProps {
  run: string;
  isOpen: boolean;
  onClose: () => void;
}

function ReportDialog({ run, isOpen, onClose }: ReportDialogProps) {
  const query = useQuery({
    queryKey: ["run", run, "report"],
    queryFn: () => fetchReport(run),
    enabled: isOpen,
  });
  const isOnCpu = useDocument((state) => isLoopOnCpu(state.document));
  const gauges = useLive("gauges", (live) => live.state.gauges);
  return (
    <Dialog
      title="Report"
      description="What was predicted for the run and what was measured, with the error of each prediction."
      isOpen={isOpen}
      onClose={onClose}
      width="max-w-2xl"
    >
      <Answer query={query} loading="Loading the report" failed="There is no report">
        {(report) => (
          <div className="flex max-h-[70vh] flex-col gap-5 overflow-y-auto">
            <p className="text-sm">{findingOf(report, gauges?.stages)}</p>
            <Controls run={run} controls={report.controls} />
            <Part title="Time" rows={timesOf(report)} format={formatSeconds} />
            <Part
              title="Tokens per second while busy"
              rows={ratesOf(report)}
              format={(rate) => (rate === null ? "–" : formatRate(rate, "tok"))}
            />
            <Part
              title={isOnCpu ? "Memory of a process" : "Memory of a GPU"}
              rows={memoryOf(report)}
              format={formatBytes}
            />
          </div>
        )}
      </Answer>
    </Dialog>
  );
}

type Control = Bodies["RunReport"]["controls"][number];

/** Which controls of the run there are, by kind. */
function Controls({ run, controls }: { run: string; controls: readonly Control[] }) {
  if (controls.length === 0) return null;
  const kinds = [...new Set(controls.map(({ kind }) => kind))];
  const counts = kinds.map((kind) => {
    const own = controls.filter((control) => control.kind === kind);
    return `${kindTitle(kind)} (${formatPlural(own.length, "run")})`;
  });
  return (
    <p className="text-sm">
      Controls: {counts.join(", ")}.{" "}
      <Link href={`/runs/${run}/controls`} className="text-accent-text underline">
        Compare
      </Link>
    </p>
  );
}

interface PartProps {
  title: string;
  rows: readonly Compared[];
  format: (value: number | null) => string;
}

function Part({ title, rows, format }: PartProps) {
  if (rows.length === 0) return null;
  const largest = Math.max(...rows.flatMap((row) => [row.predicted ?? 0, row.measured ?? 0]));
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
