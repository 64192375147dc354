import { Check, TriangleAlert } from "lucide-react";
import { useState } from "react";
import { acknowledgeAlert } from "@/api/routes";
import { isAcknowledged } from "@/live/acknowledged";
import { useLiveRun, useLiveVersion } from "@/live/hooks";
import type { LiveRun } from "@/live/LiveRun";
import { useReplayStep } from "@/live/recordContext";
import type { LiveAlert } from "@/live/state";
import { showField } from "@/state/selection";
import { useAttempt } from "@/state/useAttempt";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { RichText } from "@/ui/RichText";
import { WhyButton } from "@/ui/WhyButton";

const ORDER: readonly LiveAlert["level"][] = ["error", "warning", "info"];

export function AlertList() {
  const live = useLiveRun();
  useLiveVersion("lines");
  if (!live || live.state.alerts.length === 0) return null;
  return (
    <ul
      aria-label="Alerts"
      tabIndex={0}
      className="flex shrink-0 flex-col overflow-y-auto border-line text-sm max-lg:max-h-28 max-lg:border-b lg:w-[42%] lg:border-l"
    >
      {byGravity(live).map((alert) => (
        <AlertItem key={alert.raised} live={live} alert={alert} />
      ))}
    </ul>
  );
}

function AlertItem({ live, alert }: { live: LiveRun; alert: LiveAlert }) {
  const isNoted = isAcknowledged(live, alert);
  const tone = alert.level === "error" ? "text-error" : "text-warning";
  return (
    <li
      data-level={alert.level}
      data-acknowledged={isNoted}
      className="flex items-start gap-2 border-line border-b px-3 py-1.5"
    >
      <TriangleAlert
        size={15}
        aria-label={alert.level}
        className={`mt-0.5 shrink-0 ${isNoted ? "text-faint" : tone}`}
      />
      <span className="min-w-0 flex-1">
        <span className={isNoted ? "text-muted" : ""}>
          <RichText text={alert.message} />
        </span>
        {alert.hint && !isNoted ? <Next hint={alert.hint} /> : null}
      </span>
      <span className="flex shrink-0 flex-col items-end gap-1 text-muted text-xs">
        {isNoted ? <Badge>acknowledged</Badge> : <Acknowledge live={live} alert={alert} />}
        <span className="tabular">
          {alert.count > 1 ? `${alert.count} times, last at ` : "at "}step {alert.step ?? "–"}
        </span>
        <span className="flex items-center gap-2">
          {alert.node ? (
            <button
              type="button"
              className="max-w-32 truncate text-accent-text hover:underline"
              onClick={() => showNode(alert.node)}
            >
              Show {alert.node}
            </button>
          ) : null}
          <WhyButton code={alert.code} />
        </span>
      </span>
    </li>
  );
}

function Next({ hint }: { hint: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <button
      type="button"
      aria-expanded={isOpen}
      title={isOpen ? undefined : hint}
      className={`text-left text-muted ${isOpen ? "block" : "line-clamp-1"}`}
      onClick={() => setOpen(!isOpen)}
    >
      <span className="font-medium">Next: </span>
      <RichText text={hint} />
    </button>
  );
}

/** Of the past nothing is noted. */
function Acknowledge({ live, alert }: { live: LiveRun; alert: LiveAlert }) {
  const isReplay = useReplayStep() !== null;
  const { isBusy, attempt } = useAttempt();
  if (isReplay) return null;
  const acknowledge = () =>
    attempt(
      async () => live.setRun(await acknowledgeAlert(live.id, alert.raised)),
      "The alert was not acknowledged.",
    );
  return (
    <Button
      size="small"
      icon={<Check size={13} />}
      disabled={isBusy}
      title="Acknowledged: not counted until it is raised again"
      aria-label={`Acknowledge: ${alert.message}`}
      onClick={() => void acknowledge()}
    >
      Acknowledge
    </Button>
  );
}

function byGravity(live: LiveRun): LiveAlert[] {
  const rank = (alert: LiveAlert) =>
    isAcknowledged(live, alert) ? ORDER.length : ORDER.indexOf(alert.level);
  return live.state.alerts.toReversed().toSorted((one, other) => rank(one) - rank(other));
}

function showNode(node: string | null): void {
  if (node === null) return;
  showField(node, null);
}
