import { LoaderCircle, WifiOff } from "lucide-react";
import { useEffect, useState } from "react";
import type { Gauges, RunSummary } from "@/api/types";
import { formatAgo, formatCount, formatPlural, formatSeconds, secondsOf } from "@/lib/format";
import { useLive, useLiveRun, useLiveVersion } from "@/live/hooks";
import type { LiveRun } from "@/live/LiveRun";
import { isFinal } from "@/live/reducer";
import { Tooltip } from "@/ui/Tooltip";
import { useSeconds } from "@/ui/useSeconds";
import { BottleneckChip } from "./BottleneckChip";

export function RunProgress() {
  const live = useLiveRun();
  useLiveVersion("gauges");
  useLiveVersion("status");
  if (!live) return null;
  const { run, state, connection } = live;
  const { gauges } = state;
  const begun = state.phases.at(-1);
  const isEnded = connection === "ended";
  const phase = gauges?.phase ?? begun?.name ?? "–";
  const round = begun?.round ?? 1;
  const step = doneStep(live);
  const total = gauges?.steps_total ?? run?.steps_total ?? null;
  const eta = isEnded ? null : (gauges?.eta_seconds ?? null);
  const took = run && isFinal(run.state) ? secondsOf(run) : null;
  const stage = isEnded ? "" : [...state.running.keys()].join(", ") || gauges?.stage || "";
  const isBound = gauges?.is_bound === true;
  const waiting = waitingFor(run);
  const whole = total && step !== null ? Math.min(1, step / total) : null;

  return (
    <section
      className="flex h-11 shrink-0 items-center gap-4 border-line border-b bg-surface px-3 text-sm"
      aria-label="Progress"
    >
      {waiting ? <RunWaiting text={waiting} /> : null}
      {waiting && step === null ? null : (
        <>
          <span className="min-w-0 max-w-40 truncate" title="Phase">
            <b data-testid="run-phase">{phase}</b>
            {round > 1 ? <span className="tabular text-muted"> round {round}</span> : null}
          </span>
          <span className="tabular whitespace-nowrap">
            <span className="text-muted">step</span>{" "}
            <b data-testid="run-step">{formatCount(step)}</b>
            {total ? (
              <span
                className="text-muted"
                title={isBound ? "A trigger or a full buffer may end a phase earlier" : undefined}
              >
                {isBound ? ` of at most ${formatCount(total)}` : ` of ${formatCount(total)}`}
              </span>
            ) : null}
          </span>
        </>
      )}
      <span
        role="progressbar"
        aria-label="Steps done"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={whole === null ? undefined : Math.round(whole * 100)}
        className="h-2.5 min-w-16 max-w-60 flex-1 overflow-hidden rounded-[3px] bg-hover"
      >
        <span
          className="block h-full bg-muted transition-[width] motion-reduce:transition-none"
          style={{ width: `${(whole ?? 0) * 100}%` }}
        />
      </span>
      <StepTime gauges={gauges} />
      {took === null ? null : (
        <span className="tabular whitespace-nowrap" title="From its start to its end">
          <b>{formatSeconds(took)}</b> <span className="text-muted">in all</span>
        </span>
      )}
      {took === null || !run?.ended_at ? null : (
        <time
          dateTime={run.ended_at}
          title={new Date(run.ended_at).toLocaleString()}
          className="whitespace-nowrap text-muted max-lg:hidden"
        >
          ended {formatAgo(run.ended_at)}
        </time>
      )}
      {eta === null ? null : (
        <span
          className="tabular whitespace-nowrap"
          title="Estimated from the mean of the last steps and of the last evaluations"
        >
          {isBound ? <span className="text-muted">at most </span> : null}
          <b>{formatSeconds(eta)}</b> <span className="text-muted">left</span>
        </span>
      )}
      <span className="hidden min-w-0 max-w-44 truncate text-muted 2xl:block" title={stage}>
        {stage ? `now ${stage}` : ""}
      </span>
      <span className="flex-1" />
      <BottleneckChip />
    </section>
  );
}

/** The mean of the last steps, by which rates, the timeline and the time left are told as well. */
function StepTime({ gauges }: { gauges: Gauges | null }) {
  const { step_seconds: step, window_steps: count, phase, phase_step_seconds: mean } = gauges ?? {};
  if (typeof step !== "number") return null;
  const last = count ? `Mean of the last ${formatPlural(count, "step")}` : "Mean of the last steps";
  const all = mean ? `; of all steps of ${phase} ${formatSeconds(mean)}` : "";
  return (
    <span className="tabular whitespace-nowrap" title={`${last}, without evaluations${all}`}>
      <b>{formatSeconds(step)}</b>{" "}
      <span className="text-muted">a step{count ? `, last ${count}` : ""}</span>
    </span>
  );
}

function doneStep(live: LiveRun): number | null {
  const told = live.state.series.get("step/seconds")?.get("run")?.last?.step ?? 0;
  const known = live.state.gauges?.step ?? live.run?.step ?? live.state.step;
  return known === null && told === 0 ? null : Math.max(known ?? 0, told);
}

const SHOWN_AFTER_SECONDS = 3;

function RunWaiting({ text }: { text: string }) {
  const seconds = useSeconds();
  return (
    <span className="flex min-w-0 items-center gap-1.5 whitespace-nowrap text-muted">
      <LoaderCircle size={13} className="shrink-0 animate-spin" aria-hidden="true" />
      <span role="status" className="truncate" title={text}>
        {text}
      </span>
      {seconds < SHOWN_AFTER_SECONDS ? null : (
        <span className="tabular" title="Since this page was opened">
          {seconds < 60 ? `${seconds} s` : formatSeconds(seconds)}
        </span>
      )}
    </span>
  );
}

function waitingFor(run: RunSummary | null): string | null {
  if (run?.state === "queued") return "Waiting for another run to end";
  if (run?.state !== "starting") return null;
  return `Starting: ${run.message ?? "the driver loads the engine and starts its workers"}`;
}

export function ConnectionChip() {
  const connection = useLive("status", (live) => live.connection, "loading");
  const stale = useStaleness();
  if (connection === "loading") {
    return (
      <span role="status" className="flex items-center gap-1 text-muted text-xs">
        <LoaderCircle size={13} className="animate-spin" /> loading history
      </span>
    );
  }
  if (stale === 0) return null;
  return (
    <Tooltip text="The connection to the server was lost. The run continues; the page catches up as soon as it can.">
      <span
        role="status"
        className="flex items-center gap-1 rounded-full bg-warning-soft px-2 py-0.5 text-warning text-xs"
      >
        <WifiOff size={13} aria-hidden="true" /> stale for {stale} s
      </span>
    </Tooltip>
  );
}

const SILENT_SECONDS = 14;

/** Seconds since the server was last heard of, where that is longer than it should be; else 0. */
function useStaleness(): number {
  const live = useLiveRun();
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    if (!live) return;
    const timer = setInterval(() => {
      const silent = (Date.now() - live.heardAt) / 1000;
      const isWatching = live.connection === "live" || live.connection === "reconnecting";
      const isStale = live.connection === "reconnecting" || silent > SILENT_SECONDS;
      setSeconds(isWatching && isStale ? Math.max(1, Math.round(silent)) : 0);
    }, 1000);
    return () => clearInterval(timer);
  }, [live]);
  return seconds;
}
