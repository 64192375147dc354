import { CircleX, TriangleAlert } from "lucide-react";
import { openAlerts, useLive, useLiveRun, useLiveVersion } from "@/live/hooks";
import type { LiveRun } from "@/live/LiveRun";
import { RichText } from "@/ui/RichText";
import { Tooltip } from "@/ui/Tooltip";
import { BADGE, TONES } from "./NodeBadge";

export function useHasFailed(node: string): boolean {
  return useLive("status", (live) => errorOf(live)?.node === node, false);
}

export function LiveBadge({ node }: { node: string }) {
  const failure = useLive("status", errorOf, null);
  const error = failure?.node === node ? failure : null;
  const count = useLive("lines", (live) => alertsOf(live, node).length, 0);
  if (error) {
    return (
      <Tooltip
        side="top"
        text={<MessageWithHint message={error.message} hint={error.hint ?? null} />}
      >
        <span className={`${BADGE} ${TONES.error.badge}`} role="img" aria-label={`${node} failed`}>
          <CircleX size={13} aria-hidden="true" /> failed
        </span>
      </Tooltip>
    );
  }
  if (count === 0) return null;
  return (
    <Tooltip side="top" text={<Alerts node={node} />}>
      <span
        className={`${BADGE} ${TONES.warning.badge}`}
        role="img"
        aria-label={`Alerts of ${node}: ${count}`}
      >
        <TriangleAlert size={13} aria-hidden="true" /> {count > 1 ? count : null}
      </span>
    </Tooltip>
  );
}

function Alerts({ node }: { node: string }) {
  const live = useLiveRun();
  useLiveVersion("lines");
  if (!live) return null;
  return (
    <ul className="flex flex-col gap-1.5">
      {alertsOf(live, node).map((alert) => (
        <li key={alert.seq}>
          <MessageWithHint message={alert.message} hint={alert.hint} />
        </li>
      ))}
    </ul>
  );
}

function MessageWithHint({ message, hint }: { message: string; hint: string | null }) {
  return (
    <span className="block">
      <RichText text={message} />
      {hint ? (
        <span className="block text-muted">
          Next: <RichText text={hint} />
        </span>
      ) : null}
    </span>
  );
}

function alertsOf(live: LiveRun, node: string) {
  return openAlerts(live).filter((alert) => alert.node === node);
}

function errorOf(live: LiveRun) {
  const state = live.run?.state ?? live.state.state;
  return state === "failed" ? (live.run?.error ?? live.state.error) : null;
}
