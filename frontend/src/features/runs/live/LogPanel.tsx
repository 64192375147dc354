import { ScrollText } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { formatClock } from "@/lib/format";
import { useLive, useLiveRun, useLiveVersion } from "@/live/hooks";
import type { LogLine } from "@/live/state";
import { showField } from "@/state/selection";
import { Badge, type Tone } from "@/ui/Badge";
import { LabelledSelect } from "@/ui/LabelledSelect";
import { Empty } from "@/ui/States";
import { AlertList } from "./AlertList";

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
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const lines = live?.state.lines ?? [];
  const sources = [...new Set(lines.map((line) => line.source))];
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
              ...sources.map((name) => ({ value: name, label: name })),
            ]}
            onChange={setSource}
          />
          {shown.length === SHOWN ? <span>the last {SHOWN} lines</span> : null}
        </div>
        <div
          ref={box}
          role="log"
          aria-label="Log of the run"
          className="min-h-0 flex-1 overflow-y-auto border-line border-t py-1 font-mono text-xs"
          onScroll={() => {
            const { scrollTop = 0, clientHeight = 0, scrollHeight = 0 } = box.current ?? {};
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

/** The story leaves out what only helps to find faults. */
function isShown(line: LogLine, source: string): boolean {
  if (source === STORY) return line.level !== "debug";
  return source === EVERYTHING || line.source === source;
}

/** The node stands before the line already. */
function withoutNode({ node, message }: LogLine): string {
  if (node === null || !message.startsWith(node)) return message;
  const rest = message.slice(node.length);
  return /^[:\s]/.test(rest) ? rest.replace(/^[:\s]+/, "") : message;
}

function Line({ line }: { line: LogLine }) {
  const [isOpen, setOpen] = useState(false);
  const detail = line.detail === undefined || line.detail === null ? null : line.detail;
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
          onClick={() => {
            showField(line.node ?? "", null);
          }}
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
