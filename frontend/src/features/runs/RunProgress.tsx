import { formatSeconds } from "@/lib/format";
import { useLive } from "@/live/hooks";
import { BottleneckChip } from "./BottleneckChip";
import { RunWaiting, useWaiting } from "./RunWaiting";

/** Where the run is: phase, step, running stage, time left, and what holds it back. */
export function RunProgress() {
  const phase = useLive(
    "gauges",
    (live) => live.state.gauges?.phase ?? live.state.phases.at(-1)?.name ?? null,
    null,
  );
  const step = useLive(
    "gauges",
    (live) => live.state.gauges?.step ?? live.state.step ?? live.run?.step ?? null,
    null,
  );
  const total = useLive(
    "gauges",
    (live) => live.state.gauges?.steps_total ?? live.run?.steps_total ?? null,
    null,
  );
  const eta = useLive(
    "gauges",
    (live) => (live.connection === "ended" ? null : (live.state.gauges?.eta_seconds ?? null)),
    null,
  );
  const pace = useLive("gauges", (live) => live.state.gauges?.step_seconds ?? null, null);
  const stage = useLive(
    "gauges",
    (live) =>
      live.connection === "ended"
        ? null
        : (([...live.state.running.keys()].join(", ") || live.state.gauges?.stage) ?? null),
    null,
  );
  const isBound = useLive("gauges", (live) => live.state.gauges?.is_bound === true, false);
  const waiting = useWaiting();
  const whole = total && step !== null ? Math.min(1, step / total) : null;

  return (
    <section
      className="flex h-9 shrink-0 items-center gap-4 border-line border-b bg-surface px-3 text-xs"
      aria-label="Progress"
    >
      {waiting ? <RunWaiting text={waiting} /> : null}
      {waiting && step === null ? null : (
        <>
          <span className="min-w-0 max-w-40 truncate" title="Phase">
            <span className="text-muted">phase</span> <b data-testid="run-phase">{phase ?? "–"}</b>
          </span>
          <span className="tabular whitespace-nowrap">
            <span className="text-muted">step</span> <b data-testid="run-step">{step ?? "–"}</b>
            {total ? (
              <span
                className="text-muted"
                title={isBound ? "A trigger or a full buffer may end a phase before" : undefined}
              >
                {isBound ? ` of at most ${total}` : ` of ${total}`}
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
        className="h-1.5 min-w-16 flex-1 overflow-hidden rounded-full bg-hover"
      >
        <span
          className="block h-full rounded-full bg-accent transition-[width]"
          style={{ width: `${(whole ?? 0) * 100}%` }}
        />
      </span>
      {pace === null ? null : (
        <span className="tabular whitespace-nowrap">
          <span className="text-muted">step takes</span> {formatSeconds(pace)}
        </span>
      )}
      {eta === null ? null : (
        <span className="tabular whitespace-nowrap">
          <span className="text-muted">{isBound ? "at most" : "left"}</span> {formatSeconds(eta)}
          {isBound ? <span className="text-muted"> left</span> : null}
        </span>
      )}
      {stage ? (
        <span className="hidden max-w-52 truncate xl:block" title={stage}>
          <span className="text-muted">now</span> {stage}
        </span>
      ) : null}
      <BottleneckChip />
    </section>
  );
}
