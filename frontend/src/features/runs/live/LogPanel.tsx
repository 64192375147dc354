import { Check, ScrollText, TriangleAlert } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { acknowledgeAlert } from "@/api/routes";
import { formatClock } from "@/lib/format";
import { isAcknowledged, useLive, useLiveRun, useLiveVersion, useReplayStep } from "@/live/hooks";
import type { LiveRun } from "@/live/LiveRun";
import type { LiveAlert, LogLine } from "@/live/state";
import { showField } from "@/state/selection";
import { useAttempt } from "@/state/useAttempt";
import { Badge, type Tone } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { LabelledSelect } from "@/ui/LabelledSelect";
import { RichText } from "@/ui/RichText";
import { Empty } from "@/ui/States";
import { WhyButton } from "@/ui/WhyButton";

const TONES: Record<LogLine["level"], Tone> = {
  debug: "neutral",
  info: "neutral",
  warning: "warning",
  error: "error",
};
const SHOWN = 500;
const STORY = "story";
const EVERYTHING = "everything";

export function LogPanel() {
  const live = useLiveRun();
  useLiveVersion("lines");
  const hasFailed = useLive("status", ({ run }) => run?.state === "failed", false);
  const [source, setSource] = useState(STORY);
  const end = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const lines = live?.state.lines ?? [];
  const sources = sourcesOf(lines);
  const shown = lines.filter((line) => isShown(line, source)).slice(-SHOWN);

  // biome-ignore lint/correctness/useExhaustiveDependencies: follows every new line
  useEffect(() => {
    if (follows.current) end.current?.scrollIntoView({ block: "end" });
  }, [lines.length, source]);

  if (lines.length === 0) {
    return (
      <Empty
        icon={<ScrollText size={24} />}
        title={hasFailed ? "The log is empty" : "No events yet"}
      >
        {hasFailed
          ? "The run failed before its driver wrote to it. The reason is shown above the graph."
          : "Alerts, checkpoints and log lines of the run appear here."}
      </Empty>
    );
  }
  return (
    <div className="flex h-full min-h-0 max-lg:flex-col-reverse">
      <div className="flex min-h-0 min-w-0 flex-1 flex-col">
        <div className="flex min-h-10 shrink-0 flex-wrap items-center gap-x-3 gap-y-1 px-3 py-1 text-muted text-xs">
          <LabelledSelect
            label="Show"
            value={source}
            options={[
              { value: STORY, label: "the main events" },
              { value: EVERYTHING, label: "everything" },
              ...sources.map(({ source, count }) => ({
                value: source,
                label: `${PLURALS[source] ?? source} (${count})`,
              })),
            ]}
            onChange={setSource}
          />
          {shown.length === SHOWN ? <span>the last {SHOWN} lines</span> : null}
        </div>
        <div
          role="log"
          aria-label="Log of the run"
          className="min-h-0 flex-1 overflow-y-auto border-line border-t py-1 font-mono text-xs"
          onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
            follows.current = scrollHeight - scrollTop - clientHeight < 40;
          }}
        >
          {shown.map((line) => (
            <Line key={line.seq} line={line} />
          ))}
          <div ref={end} />
        </div>
      </div>
      <AlertList />
    </div>
  );
}

const PLURALS: Record<string, string> = {
  phase: "phases",
  trigger: "triggers",
  alert: "alerts",
  checkpoint: "checkpoints",
  edit: "edits",
  check: "findings",
  log: "messages",
  run: "states",
};
const ORDER = Object.keys(PLURALS);

/** What the log holds, each with its number of lines: phases, triggers and alerts first. */
export function sourcesOf(
  lines: readonly Pick<LogLine, "source">[],
): { source: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const { source } of lines) counts.set(source, (counts.get(source) ?? 0) + 1);
  const place = (source: string) => ORDER.indexOf(source) >>> 0;
  return [...counts]
    .map(([source, count]) => ({ source, count }))
    .toSorted((a, b) => place(a.source) - place(b.source));
}

function isShown(line: LogLine, source: string): boolean {
  if (source === STORY) return line.level !== "debug";
  return source === EVERYTHING || line.source === source;
}

function withoutNode({ node, message }: LogLine): string {
  if (node === null || !message.startsWith(node)) return message;
  const rest = message.slice(node.length);
  return /^[:\s]/.test(rest) ? rest.replace(/^[:\s]+/, "") : message;
}

function Line({ line }: { line: LogLine }) {
  const [isOpen, setOpen] = useState(false);
  const detail = line.detail ?? null;
  return (
    <div className="flex items-baseline gap-2 px-3 py-0.5 hover:bg-hover">
      <time className="tabular shrink-0 text-faint" dateTime={line.at}>
        {formatClock(line.at)}
      </time>
      <span className="tabular w-12 shrink-0 text-right text-faint">{line.step ?? ""}</span>
      <Badge tone={TONES[line.level]} className="font-sans">
        {line.source}
      </Badge>
      {line.node ? (
        <button
          type="button"
          className="shrink-0 text-accent-text hover:underline"
          onClick={() => showField(line.node)}
        >
          {line.node}
        </button>
      ) : null}
      <span className="min-w-0 flex-1 whitespace-pre-wrap break-words">
        {withoutNode(line)}
        {detail !== null ? (
          <button
            type="button"
            className="ml-2 text-faint underline"
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            {isOpen ? "less" : "more"}
          </button>
        ) : null}
        {isOpen ? (
          <pre className="mt-1 overflow-x-auto rounded-1 bg-sunken p-2">
            {typeof detail === "string" ? detail : JSON.stringify(detail, null, 1)}
          </pre>
        ) : null}
      </span>
    </div>
  );
}

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
              onClick={() => showField(alert.node)}
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
    isAcknowledged(live, alert) ? 2 : Number(alert.level === "warning");
  return live.state.alerts.toReversed().toSorted((a, b) => rank(a) - rank(b));
}
