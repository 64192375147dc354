import { Flame } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import type { Gauges } from "@/api/types";
import { formatSeconds, formatShare } from "@/lib/format";
import { useLive, useLiveRun, useRecord, useReplayStep } from "@/live/hooks";
import { isFinal } from "@/live/reducer";
import { useCatalog, useDocument, useOpenLoop } from "@/state/document/context";
import { useRunEdits } from "@/state/runEdits";
import { select, showField } from "@/state/selection";
import { Button } from "@/ui/Button";
import { Popover } from "@/ui/Popover";
import { RichText } from "@/ui/RichText";
import { ForkDialog } from "../start/ForkDialog";
import { type Bottleneck, bottleneckOf, type Remedy, remedyOf } from "./remedies";

const SHOWN = 6;

export function BottleneckChip() {
  const live = useLiveRun();
  const gauges = useLive("gauges", (run) => run.state.gauges);
  const catalog = useCatalog();
  const loop = useDocument(({ document }) => document);
  const found = bottleneckOf(gauges, live?.state.spans ?? []);
  if (!found || !live) return null;
  const remedy = remedyOf(catalog, loop, found, {
    spans: live.state.spans,
    read: (node, metric) => live.state.series.get(metric)?.get(node)?.last?.value ?? null,
  });
  return (
    <div className="flex min-w-0 items-center gap-2 rounded-2 border border-warning/25 bg-warning-soft py-0.5 pr-1 pl-2.5 text-warning">
      <Popover
        label="Bottleneck of the run"
        align="end"
        trigger={
          <button type="button" className="flex min-w-0 items-center gap-1.5 text-left">
            <Flame size={13} className="shrink-0" aria-hidden="true" />
            <span className="tabular truncate" data-testid="bottleneck">
              <b>{found.stage}</b> {sentence(found)}
            </span>
          </button>
        }
      >
        <Reason found={found} gauges={gauges} remedy={remedy} />
      </Popover>
      <TheRemedy found={found} remedy={remedy} />
    </div>
  );
}

/** A run that goes on takes what it can; else a new run begins with it, or the field is only shown. */
function TheRemedy({ found, remedy }: { found: Bottleneck; remedy: Remedy | null }) {
  const [isForking, setForking] = useState(false);
  const run = useRecord()?.run;
  const isReplay = useReplayStep() !== null;
  const { path = "", reason, fix } = remedy ?? {};
  const isTaken = run && remedy?.isHot && !isFinal(run.state) && !isReplay;
  const press = () => {
    if (!run || !fix) showField(found.node, path.replace(`nodes.${found.node}.`, "") || null);
    else if (isTaken) useRunEdits.getState().set(path, fix.value);
    else setForking(true);
  };
  return (
    <>
      <Button size="small" title={reason} onClick={press}>
        {remedy?.label ?? `Show ${found.node}`}
        {run && fix ? (
          <span className="tabular text-muted">
            {formatSeconds(found.stepSeconds)} → {formatSeconds(fix.stepSeconds)}
          </span>
        ) : null}
      </Button>
      {run && fix && reason ? (
        <ForkDialog
          run={run}
          isOpen={isForking}
          onClose={() => setForking(false)}
          changes={{ [path]: fix.value }}
          reason={reason}
        />
      ) : null}
    </>
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
        {found.stepSeconds ? ` of ${formatSeconds(found.stepSeconds)}` : ""}: making it faster
        shortens the step most.
      </p>
      <Advice remedy={remedy} />
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
          Evaluations run between the steps and take {formatShare(gauges.evaluation_share)} of the
          time.
        </p>
      ) : null}
      <Button size="small" className="self-start" onClick={() => select({ nodes: [found.node] })}>
        Select {found.node}
      </Button>
    </div>
  );
}

function Advice({ remedy }: { remedy: Remedy | null }) {
  if (!remedy) return <p className="text-muted">No known setting shortens it.</p>;
  return (
    <div>
      <p className="font-medium">Held back by {remedy.bound}</p>
      <p>
        <RichText text={remedy.reason} />
      </p>
      <p className="wrap-anywhere font-mono text-muted text-xs">{remedy.path}</p>
      <InLoop remedy={remedy} />
    </div>
  );
}

function InLoop({ remedy }: { remedy: Remedy }) {
  const { store } = useOpenLoop();
  const loopId = useRecord()?.run?.loop_id ?? null;
  const [, navigate] = useLocation();
  const node = remedy.path.startsWith("nodes.") ? remedy.path.split(".")[1] : undefined;
  if (loopId === null || node === undefined || !(node in store.getState().document.nodes))
    return null;
  return (
    <Button
      size="small"
      className="mt-2"
      onClick={() => navigate(`/loops/${loopId}?node=${encodeURIComponent(node)}`)}
    >
      Open {node} in the loop
    </Button>
  );
}
