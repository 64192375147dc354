import { Flame } from "lucide-react";
import { Popover } from "radix-ui";
import type { Gauges } from "@/api/types";
import { formatSeconds, formatShare } from "@/lib/format";
import { useLive } from "@/live/hooks";
import { useSelection } from "@/session/selection";
import { Button } from "@/ui/Button";

const SHOWN = 6;

/** The stage that takes most of a step; a press says why, and what else a step is made of. */
export function BottleneckChip() {
  const name = useLive("gauges", (live) => live.state.gauges?.bottleneck ?? null, null);
  const share = useLive(
    "gauges",
    (live) => live.state.gauges?.stages?.[live.state.gauges.bottleneck ?? ""]?.share ?? null,
    null,
  );
  if (!name) return null;
  return (
    <Popover.Root>
      <Popover.Trigger asChild>
        <button
          type="button"
          title="The stage that takes most of a step"
          className="flex min-w-0 items-center gap-1 rounded-full bg-warning-soft px-2 py-0.5 text-warning"
        >
          <Flame size={12} className="shrink-0" aria-hidden="true" />
          <span className="truncate">
            {name}
            {share === null ? "" : ` ${formatShare(share)}`}
          </span>
        </button>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          align="end"
          sideOffset={6}
          collisionPadding={8}
          aria-label="What holds the run back"
          className="z-50 w-80 rounded-2 border border-line bg-raised p-3 text-sm shadow-3"
        >
          <Reason />
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

function Reason() {
  const gauges = useLive<Gauges | null>("gauges", (live) => live.state.gauges, null);
  const name = gauges?.bottleneck;
  if (!gauges || !name) return null;
  const node = name.split(".")[0] ?? name;
  const stages = Object.entries(gauges.stages ?? {})
    .filter(([, stage]) => !stage.evaluation)
    .toSorted(([, a], [, b]) => b.share - a.share);
  const [, own] = stages.find(([stage]) => stage === name) ?? [];
  return (
    <div className="flex flex-col gap-2">
      <p>
        <b>{name}</b> takes {formatShare(own?.share)} of a step
        {gauges.step_seconds ? ` of ${formatSeconds(gauges.step_seconds)}` : ""}. Stages run one
        after another, so what shortens it most shortens the step.
      </p>
      <ul className="flex flex-col gap-1 text-xs" aria-label="Stages of a step">
        {stages.slice(0, SHOWN).map(([stage, { seconds, share }]) => (
          <li key={stage} className="flex items-center gap-2">
            <span className="w-32 truncate">{stage}</span>
            <span className="h-1.5 flex-1 rounded-full bg-hover">
              <span
                className={`block h-full rounded-full ${stage === name ? "bg-warning-mark" : "bg-line-strong"}`}
                style={{ width: `${Math.min(1, share) * 100}%` }}
              />
            </span>
            <span className="tabular w-24 text-right text-muted">
              {formatSeconds(seconds)} · {formatShare(share)}
            </span>
          </li>
        ))}
      </ul>
      {gauges.evaluation_share > 0 ? (
        <p className="text-muted text-xs">
          Evaluations lie between the steps and take {formatShare(gauges.evaluation_share)} of the
          time.
        </p>
      ) : null}
      <Button
        size="small"
        className="self-start"
        onClick={() => useSelection.getState().select({ nodes: [node] })}
      >
        Select {node}
      </Button>
    </div>
  );
}
