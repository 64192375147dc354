import { ChevronLeft, ChevronRight, Pin, PinOff } from "lucide-react";
import { create } from "zustand";
import type { SampleRow } from "@/api/types";
import { formatMetric } from "@/lib/format";
import { useNodeColor } from "@/state/document/context";
import { classes } from "@/ui/classes";
import { IconButton } from "@/ui/IconButton";
import { idOf, type PromptGroup, rewardsOf, shortAnswer } from "./groups";
import { sampleText } from "./sampleText";

interface GroupListProps {
  group: PromptGroup;
  number: number;
  count: number;
  step: number;
  read: SampleRow;
  onChoose: (row: SampleRow) => void;
  onGroup: (by: number) => void;
}

export function GroupList({ group, number, count, step, read, onChoose, onGroup }: GroupListProps) {
  const { pinned, pin } = usePins();
  const isPinned = pinned === group.prompt;
  const rewards = rewardsOf(group.rows);
  const [least, most] = [Math.min(0, ...rewards), Math.max(1e-9, ...rewards)];
  const hasAdvantage = group.rows.some(({ advantage }) => typeof advantage === "number");
  const press = (event: React.KeyboardEvent) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const prompts = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by !== undefined) {
      const next = group.rows[group.rows.indexOf(read) + by];
      if (next) onChoose(next);
    } else if (prompts !== undefined) onGroup(prompts);
    else return;
    event.preventDefault();
  };
  return (
    <section
      aria-label="Texts of one prompt"
      className="flex min-h-0 w-[21%] min-w-64 max-w-96 shrink-0 flex-col"
    >
      <div className="flex min-h-9 shrink-0 items-center gap-1 pr-2 pl-3 text-xs">
        <span className="tabular min-w-0 flex-1 truncate text-muted">
          step {step} · prompt {number + 1} of {count}
        </span>
        <IconButton
          label="Prompt before"
          size="small"
          onClick={() => onGroup(-1)}
          icon={<ChevronLeft size={15} />}
        />
        <IconButton
          label="Next prompt"
          size="small"
          onClick={() => onGroup(1)}
          icon={<ChevronRight size={15} />}
        />
        <IconButton
          label={isPinned ? "Unpin the prompt" : "Pin the prompt, to see it over time"}
          size="small"
          onClick={() => pin(isPinned ? null : group.prompt)}
          icon={isPinned ? <PinOff size={14} /> : <Pin size={14} />}
        />
      </div>
      <div className="flex shrink-0 items-end gap-2 px-3 pb-1 text-muted text-xs">
        <p className="line-clamp-3 min-w-0 flex-1 font-mono text-sm text-text" title={group.prompt}>
          {group.prompt}
        </p>
        <span aria-hidden="true">reward</span>
        {hasAdvantage ? <span aria-hidden="true">advantage</span> : null}
      </div>
      <div
        role="listbox"
        aria-label="Texts"
        tabIndex={0}
        className="min-h-0 flex-1 overflow-y-auto px-1 pb-1"
        onKeyDown={press}
      >
        {group.rows.map((row, place) => (
          <Row
            key={idOf(row)}
            row={row}
            place={place}
            isRead={row === read}
            share={((row.reward ?? least) - least) / (most - least)}
            onChoose={onChoose}
          />
        ))}
      </div>
    </section>
  );
}

interface RowProps {
  row: SampleRow;
  place: number;
  isRead: boolean;
  share: number;
  onChoose: (row: SampleRow) => void;
}

function Row({ row, place, isRead, share, onChoose }: RowProps) {
  const color = useNodeColor(row.node ?? "");
  const answer = shortAnswer(sampleText(row.completion));
  const reward = row.reward ?? null;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the list takes the keys
    <div
      role="option"
      tabIndex={-1}
      aria-selected={isRead}
      className={classes(
        "tabular flex h-7 cursor-pointer items-center gap-2 rounded-2 px-2 text-sm hover:bg-hover",
        isRead && "bg-accent-soft",
      )}
      onClick={() => onChoose(row)}
    >
      <span
        aria-hidden="true"
        className={classes(
          "size-2 shrink-0 rounded-full",
          reward === null ? "bg-line-strong" : reward > 0 ? "bg-success-mark" : "bg-error",
        )}
      />
      <span className="sr-only">Text {place + 1}: </span>
      <span className="min-w-0 flex-1 truncate font-mono">
        {answer === "" ? "(empty)" : answer}
      </span>
      <span aria-hidden="true" className="h-1.5 w-14 rounded-full bg-hover max-xl:hidden">
        <span
          className="block h-full rounded-full"
          style={{ width: `${Math.max(0, Math.min(1, share)) * 100}%`, background: color }}
        />
      </span>
      <span className="sr-only">, reward </span>
      <span className="w-12 text-right">{formatMetric(reward)}</span>
      {typeof row.advantage === "number" ? (
        <span className="w-14 text-right text-muted" title="Advantage">
          <span className="sr-only">, advantage </span>
          {row.advantage > 0 ? "+" : ""}
          {formatMetric(row.advantage)}
        </span>
      ) : null}
    </div>
  );
}

export const usePins = create<{ pinned: string | null; pin: (prompt: string | null) => void }>()(
  (set) => ({ pinned: null, pin: (pinned) => set({ pinned }) }),
);
