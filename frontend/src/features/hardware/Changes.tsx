import { Lock, LockOpen, Undo2 } from "lucide-react";
import type { FittedValue, FitWay, RuledOut } from "@/api/types";
import { formatBytes, formatPlural, formatSeconds, formatShare } from "@/lib/format";
import { useDocument, useEditRefusal, useOpenLoop } from "@/state/document/context";
import { setLock, useLocks } from "@/state/document/locks";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { RichText } from "@/ui/RichText";
import { Gain } from "./StepSplit";
import { type Budget, trialRefusal } from "./useBudget";

export const WAYS = "ways-to-fit";

export function Changes({ budget }: { budget: Budget }) {
  const { answer, isTrying, own, share } = budget;
  const changes = (answer?.changes ?? []).filter(isTold);
  return (
    <section aria-label="What the budget changes" className="border-line border-b px-4 py-3">
      <div className="flex items-baseline gap-2">
        <h3 className="font-semibold text-base">What the slider changes</h3>
        <span className="flex-1" />
        {isTrying ? (
          <span className="tabular text-muted text-xs">
            {formatShare(own)} → {formatShare(share)}
          </span>
        ) : null}
      </div>
      {answer ? (
        <>
          <p
            className={`mt-1 text-xs ${answer.fits || !budget.isSettled ? "text-muted" : "text-error"}`}
            role="status"
          >
            <RichText text={budget.isSettled ? answer.verdict : "Looking for settings…"} />
          </p>
          <ul className="mt-1">
            {changes.map((change) => (
              <ChangeRow
                key={change.path}
                change={change}
                isPromised={answer.fits && answer.refusal === null}
              />
            ))}
          </ul>
          {changes.length === 0 ? (
            <p className="py-2 text-muted text-sm">
              {!answer.fits && budget.isSettled
                ? "No allowed change makes it fit."
                : isTrying
                  ? "No setting has to change."
                  : "Move the budget to see what would change, and what it costs."}
            </p>
          ) : null}
        </>
      ) : (
        <p className="py-2 text-muted text-sm">Looking for settings…</p>
      )}
      <HeldLocks shown={changes.map((change) => change.path)} />
      <p className="py-1.5 text-muted text-xs">
        Batch, lengths and learning rate are never changed.
      </p>
      <Buttons budget={budget} count={changes.filter((change) => change.is_written).length} />
      {answer && !answer.fits && budget.isSettled ? (
        <>
          <Ways ways={answer.ways} isLooking={budget.isAsking} budget={budget} />
          {budget.isAsking ? null : <NoHelp others={answer.ruled_out} />}
        </>
      ) : null}
    </section>
  );
}

/** The budget itself is told above; what only writes down what holds anyway is nothing new. */
function isTold({ node, old_text, new_text, is_locked }: FittedValue): boolean {
  return node !== null && (is_locked || old_text !== new_text);
}

function ChangeRow({ change, isPromised }: { change: FittedValue; isPromised: boolean }) {
  return (
    <li
      className="flex items-center gap-2 border-line border-b py-1.5 text-sm"
      title={change.reason}
    >
      <LockButton path={change.path} name={`${change.title} of ${change.node ?? "the loop"}`} />
      <span className="min-w-0 flex-1 leading-4">
        <span className="block truncate font-medium">{change.title}</span>
        <span className="block truncate text-muted text-xs">
          {change.node}
          {change.is_locked ? ", locked by you" : change.is_written ? "" : ", chosen again"}
        </span>
      </span>
      <span className="tabular text-right text-muted text-xs">
        {change.old_text === change.new_text ? null : `${change.old_text} → `}
        <b className="text-text">{change.new_text}</b>
      </span>
      <span className="tabular min-w-14 shrink-0 whitespace-nowrap text-right text-xs">
        {isPromised ? <CostText seconds={change.seconds} /> : null}
      </span>
    </li>
  );
}

function CostText({ seconds }: { seconds: number | null }) {
  if (seconds === null)
    return (
      <span className="text-faint" title="Included in the line above">
        ″
      </span>
    );
  if (Math.abs(seconds) < 1e-3) return <span className="text-muted">0 s</span>;
  return <Gain seconds={seconds} />;
}

function LockButton({ path, name }: { path: string; name: string }) {
  const { store } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const isLocked = useLocks().includes(path);
  const label = isLocked ? `Unlock ${name}` : `Lock ${name}`;
  return (
    <IconButton
      label={isReadonly ? `${label}: the loop cannot be changed here` : label}
      size="small"
      aria-pressed={isLocked}
      onClick={() => store.dispatch(setLock, { path, isLocked: !isLocked }, { label })}
      icon={isLocked ? <Lock size={13} /> : <LockOpen size={13} className="text-faint" />}
    />
  );
}

function HeldLocks({ shown }: { shown: readonly string[] }) {
  const locks = useLocks().filter((path) => !shown.includes(path));
  if (locks.length === 0) return null;
  return (
    <ul aria-label="Locked settings">
      {locks.map((path) => (
        <li key={path} className="flex items-center gap-2 border-line border-b py-1.5 text-sm">
          <LockButton path={path} name={path} />
          <span className="min-w-0 flex-1 truncate">{path.replace(/^nodes\./, "")}</span>
          <span className="text-muted text-xs">locked by you</span>
        </li>
      ))}
    </ul>
  );
}

function Buttons({ budget, count }: { budget: Budget; count: number }) {
  const { answer, isTrying, apply, back, own } = budget;
  const refusal = useEditRefusal();
  if (!isTrying && count === 0) return null;
  const band = answer?.after_time.time_band;
  return (
    <div className="flex flex-wrap items-center gap-2">
      <Button
        look="primary"
        refusal={refusal ?? trialRefusal(budget, "see the ways below")}
        onClick={apply}
      >
        Apply
      </Button>
      {isTrying ? (
        <Button icon={<Undo2 size={14} />} onClick={back}>
          Back to {formatShare(own)}
        </Button>
      ) : null}
      <span className="flex-1" />
      {band ? (
        <span className="tabular text-muted text-xs">
          predicted, ×{band.least} to ×{band.most}
        </span>
      ) : null}
    </div>
  );
}

const ASKS: Record<FitWay["touches"], string> = {
  lock: "a lock",
  budget: "the budget",
  hardware: "the hardware",
  learning: "what it learns",
};

export function isWayOut(ways: readonly FitWay[]): boolean {
  return ways.some((way) => way.over_bytes === 0);
}

/** What a way leads to: a time only where a run would take it. */
function ledTo(way: FitWay): string {
  const peak = way.peak_bytes === null ? "fits" : `fits in ${formatBytes(way.peak_bytes)}`;
  const left = way.over_bytes > 0 ? `still ${formatBytes(way.over_bytes)} over` : null;
  if (way.refusal !== null) return `${left ?? peak}, but ${way.refusal}`;
  return left ?? `${peak}, step ${formatSeconds(way.step_seconds)}`;
}

function waysTitle(ways: readonly FitWay[]): string {
  const count = formatPlural(ways.length, "way");
  return isWayOut(ways)
    ? `${count} to make it fit`
    : `None makes it fit: ${count} to reduce memory`;
}

interface WaysProps {
  ways: readonly FitWay[];
  isLooking: boolean;
  budget: Budget;
}

function Ways({ ways, isLooking, budget }: WaysProps) {
  const refusal = useEditRefusal();
  if (isLooking) return <p className="mt-2 text-muted text-sm">Looking for what would help…</p>;
  if (ways.length === 0) {
    return (
      <p className="mt-2 text-muted text-sm">
        Nothing that was tried makes it fit: use a smaller model, or more memory.
      </p>
    );
  }
  return (
    <div
      id={WAYS}
      tabIndex={-1}
      className="mt-3 focus:rounded-2 focus:outline-2 focus:outline-focus focus:outline-offset-4"
    >
      <h4 className="font-semibold text-sm">{waysTitle(ways)}</h4>
      <ul aria-label={isWayOut(ways) ? "Ways to make it fit" : "Ways to reduce memory"}>
        {ways.map((way) => (
          <li key={way.title} className="flex items-start gap-2 border-line border-b py-2 text-sm">
            <span className="min-w-0 flex-1">
              <span className="font-medium">{way.title}</span>{" "}
              <Badge tone={way.touches === "learning" ? "warning" : "neutral"}>
                {ASKS[way.touches]}
              </Badge>
              <span className="tabular block text-xs">{ledTo(way)}</span>
              <span className="block text-muted text-xs">{way.reason}</span>
            </span>
            <Button
              size="small"
              refusal={refusal}
              aria-label={`Take: ${way.title}`}
              onClick={() => budget.take(way.edits, way.title, way.unlocks)}
            >
              Take
            </Button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Usual ways that are none here, so that nobody has to wonder. */
function NoHelp({ others }: { others: readonly RuledOut[] }) {
  if (others.length === 0) return null;
  return (
    <>
      <h4 className="mt-3 font-semibold text-sm">No help here</h4>
      <ul aria-label="Ways that do not help">
        {others.map((other) => (
          <li key={other.usual} className="border-line border-b py-1.5 text-xs last:border-b-0">
            <span className="font-medium">{other.title}</span>
            <span className="block text-muted">{other.reason}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
