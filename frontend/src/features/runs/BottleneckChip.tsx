import { Flame } from "lucide-react";
import { Popover } from "radix-ui";
import { useState } from "react";
import type { Gauges } from "@/api/types";
import { useCatalog, useDocument } from "@/document/context";
import { formatSeconds, formatShare } from "@/lib/format";
import { useLive, useLiveRun } from "@/live/hooks";
import { useRecord } from "@/live/recordContext";
import { useSelection } from "@/session/selection";
import { Button } from "@/ui/Button";
import { RichText } from "@/ui/RichText";
import { type Bottleneck, bottleneckOf, type Remedy, remedyOf } from "./bottleneck";
import { ForkDialog } from "./ForkDialog";

const SHOWN = 6;

/** What holds the run back, in a sentence, and what would help; a press says what a step is made of. */
export function BottleneckChip() {
  const live = useLiveRun();
  const gauges = useLive<Gauges | null>("gauges", (run) => run.state.gauges, null);
  const catalog = useCatalog();
  const loop = useDocument(({ document }) => document.rest);
  const [isForking, setForking] = useState(false);
  const run = useRecord()?.run;
  const found = bottleneckOf(gauges, live?.state.spans ?? []);
  if (!found || !live) return null;
  const remedy = remedyOf(catalog, loop, found, live.state.spans);
  return (
    <div className="flex min-w-0 items-center gap-2 rounded-2 border border-warning/25 bg-warning-soft py-0.5 pr-1 pl-2.5 text-warning">
      <Popover.Root>
        <Popover.Trigger asChild>
          <button type="button" className="flex min-w-0 items-center gap-1.5 text-left">
            <Flame size={13} className="shrink-0" aria-hidden="true" />
            <span className="tabular truncate" data-testid="bottleneck">
              <b>{found.stage}</b> {sentence(found)}
            </span>
          </button>
        </Popover.Trigger>
        <Popover.Portal>
          <Popover.Content
            align="end"
            sideOffset={6}
            collisionPadding={8}
            aria-label="What holds the run back"
            className="z-50 w-96 max-w-[calc(100vw-16px)] rounded-2 border border-line bg-raised p-3 text-sm shadow-3"
          >
            <Reason found={found} gauges={gauges} remedy={remedy} />
          </Popover.Content>
        </Popover.Portal>
      </Popover.Root>
      {remedy ? (
        <Button size="small" title={remedy.reason} onClick={() => setForking(true)}>
          {remedy.label}
          <span className="tabular text-muted">
            {formatSeconds(found.stepSeconds)} → {formatSeconds(remedy.stepSeconds)}
          </span>
        </Button>
      ) : (
        <Button
          size="small"
          onClick={() => useSelection.getState().select({ nodes: [found.node] })}
        >
          Show {found.node}
        </Button>
      )}
      {remedy && run ? (
        <ForkDialog
          run={run}
          isOpen={isForking}
          onClose={() => setForking(false)}
          changes={remedy.changes}
          reason={remedy.reason}
        />
      ) : null}
    </div>
  );
}

function sentence({ seconds, stepSeconds, share, idle }: Bottleneck): string {
  const part = stepSeconds
    ? `sets the pace: ${formatSeconds(seconds)} of ${formatSeconds(stepSeconds)}`
    : `sets the pace: ${formatShare(share)} of a step`;
  return idle && idle.share > 0.2
    ? `${part}. ${idle.pool} idle ${formatShare(idle.share)}.`
    : `${part}.`;
}

interface ReasonProps {
  found: Bottleneck;
  gauges: Gauges | null;
  remedy: Remedy | null;
}

function Reason({ found, gauges, remedy }: ReasonProps) {
  const stages = Object.entries(gauges?.stages ?? {})
    .filter(([, stage]) => !stage.evaluation)
    .toSorted(([, a], [, b]) => b.share - a.share);
  return (
    <div className="flex flex-col gap-2">
      <p>
        <b>{found.stage}</b> takes {formatShare(found.share)} of a step
        {found.stepSeconds ? ` of ${formatSeconds(found.stepSeconds)}` : ""}: what shortens it most
        shortens the step.
      </p>
      {remedy ? (
        <p>
          <RichText text={remedy.reason} />
        </p>
      ) : null}
      <ul className="flex flex-col gap-1 text-xs" aria-label="Stages of a step">
        {stages.slice(0, SHOWN).map(([stage, { seconds, share }]) => (
          <li key={stage} className="flex items-center gap-2">
            <span className="w-36 truncate">{stage}</span>
            <span className="h-1.5 flex-1 rounded-full bg-hover">
              <span
                className={`block h-full rounded-full ${stage === found.stage ? "bg-warning-mark" : "bg-line-strong"}`}
                style={{ width: `${Math.min(1, share) * 100}%` }}
              />
            </span>
            <span className="tabular w-24 text-right text-muted">
              {formatSeconds(seconds)} · {formatShare(share)}
            </span>
          </li>
        ))}
      </ul>
      {gauges && gauges.evaluation_share > 0 ? (
        <p className="text-muted text-xs">
          Evaluations lie between the steps and take {formatShare(gauges.evaluation_share)} of the
          time.
        </p>
      ) : null}
      <Button
        size="small"
        className="self-start"
        onClick={() => useSelection.getState().select({ nodes: [found.node] })}
      >
        Select {found.node}
      </Button>
    </div>
  );
}
