import type { LiveRun } from "./LiveRun";
import type { LiveAlert } from "./state";

export function isAcknowledged({ run }: LiveRun, { raised }: LiveAlert): boolean {
  return run?.alerts.some((one) => one.seq === raised && one.acknowledged_at !== null) ?? false;
}

export function openAlerts(live: LiveRun): LiveAlert[] {
  return live.state.alerts.filter((alert) => !isAcknowledged(live, alert));
}
