import { TriangleAlert } from "lucide-react";
import { useLive } from "@/live/hooks";
import type { LiveAlert } from "@/live/state";
import { useSelection } from "@/session/selection";
import { RichText } from "@/ui/RichText";
import { WhyButton } from "@/ui/WhyButton";

/** The gravest comes first. */
const ORDER: readonly LiveAlert["level"][] = ["error", "warning", "info"];
const NONE: readonly LiveAlert[] = [];

/** Alerts that hold, each with its next step. */
export function AlertList() {
  const alerts = useLive("lines", (live) => live.state.alerts, NONE);
  if (alerts.length === 0) return null;
  return (
    <ul
      aria-label="Alerts"
      className="flex shrink-0 flex-col overflow-y-auto border-line text-sm max-lg:max-h-28 max-lg:border-b lg:w-[42%] lg:border-l"
    >
      {byGravity(alerts).map((alert) => (
        <li
          key={alert.seq}
          data-level={alert.level}
          className="flex items-start gap-2 border-line border-b px-3 py-1.5"
        >
          <TriangleAlert
            size={15}
            aria-label={alert.level}
            className={`mt-0.5 shrink-0 ${alert.level === "error" ? "text-error" : "text-warning"}`}
          />
          <span className="min-w-0 flex-1">
            <span>
              <RichText text={alert.message} />
            </span>
            {alert.hint ? (
              <span className="block text-muted">
                <span className="font-medium">Next: </span>
                <RichText text={alert.hint} />
              </span>
            ) : null}
          </span>
          <span className="tabular shrink-0 text-faint text-xs leading-5">
            {alert.count > 1 ? `${alert.count} times, last at ` : "at "}step {alert.step ?? "–"}
          </span>
          <WhyButton code={alert.code} />
          {alert.node ? (
            <button
              type="button"
              className="shrink-0 text-accent-text text-xs leading-5 hover:underline"
              onClick={() => showNode(alert.node)}
            >
              Show {alert.node}
            </button>
          ) : null}
        </li>
      ))}
    </ul>
  );
}

/** Those of one gravity with the newest first. */
function byGravity(alerts: readonly LiveAlert[]): LiveAlert[] {
  return alerts
    .toReversed()
    .toSorted((one, other) => ORDER.indexOf(one.level) - ORDER.indexOf(other.level));
}

function showNode(node: string | null): void {
  if (node === null) return;
  useSelection.getState().select({ nodes: [node] });
  useSelection.getState().focusField(node, null);
}
