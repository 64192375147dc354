import { useQuery } from "@tanstack/react-query";
import { ArrowLeft, ArrowRight, ChevronLeft, ChevronRight, Pin, PinOff } from "lucide-react";
import { type ReactNode, useMemo, useState } from "react";
import { create } from "zustand";
import { fetchSampleTokens } from "@/api/routes";
import type { SampleRow, SampleTokens } from "@/api/types";
import { kindOf } from "@/graph/geometry";
import { formatMetric } from "@/lib/format";
import { useLiveRun } from "@/live/hooks";
import { useNodeColor, useOpenLoop } from "@/state/document/context";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { classes } from "@/ui/classes";
import { IconButton } from "@/ui/IconButton";
import {
  childrenOf,
  groupsOf,
  idOf,
  type PromptGroup,
  parentOf,
  rewardsOf,
  rootOf,
  type Sorting,
  shortAnswer,
  undecidedOf,
} from "./groups";
import { SamplePane } from "./SamplePane";
import { SourceNotes } from "./SampleTable";
import { sampleText } from "./sampleText";
import type { TokenView } from "./shades";

interface GroupViewProps {
  rows: readonly SampleRow[];
  step: number;
  sorting: Sorting;
  chosen: string | null;
  onChoose: (id: string) => void;
}

export function GroupView({ rows, step, sorting, chosen, onChoose }: GroupViewProps) {
  const [view, setView] = useState<TokenView>("ofAdvantage");
  const tokens = useSampleTokens(step, rows);
  const isJudge = useIsJudge();
  const groups = groupsOf(rows, sorting);
  const read = rows.find((row) => idOf(row) === chosen) ?? groups[0]?.rows[0];
  if (!read) return <p className="p-4 text-muted text-sm">No text matches.</p>;
  const root = rootOf(read, rows);
  const at = Math.max(
    0,
    groups.findIndex((group) => group.rows.includes(root)),
  );
  const group = groups[at];
  if (!group) return null;
  const left = parentOf(read, rows) ?? read;
  const answers = childrenOf(left, rows);
  const right = answers.includes(read) ? read : answers[0];
  const above = parentOf(left, rows);
  const below = right && childrenOf(right, rows)[0];
  const numberOf = (row: SampleRow, all: readonly SampleRow[], word: string) =>
    all.length > 1 ? `${word} ${all.indexOf(row) + 1} of ${all.length}` : word;
  return (
    <>
      {right ? <SourceNotes /> : null}
      <div className="flex min-h-0 flex-1">
        <GroupList
          group={group}
          number={at}
          count={groups.length}
          step={step}
          read={root}
          onChoose={(row) => onChoose(idOf(row))}
          onGroup={(by) => {
            const next = groups[(at + by + groups.length) % groups.length]?.rows[0];
            if (next) onChoose(idOf(next));
          }}
        />
        <SamplePane
          row={left}
          title={left === root ? numberOf(left, group.rows, "text") : "answers to another text"}
          tokens={tokens.get(idOf(left)) ?? null}
          view={view}
          onView={setView}
          undecided={undecidedOf(left, rows, isJudge)}
          links={<Jump to={above} icon={<ArrowLeft size={13} />} onChoose={onChoose} />}
        />
        {right ? (
          <SamplePane
            row={right}
            title={numberOf(right, answers, `on ${left.node}’s text`)}
            tokens={tokens.get(idOf(right)) ?? null}
            view={view}
            onView={setView}
            links={
              <>
                <Siblings row={right} siblings={answers} onChoose={onChoose} />
                <Jump to={below} icon={<ArrowRight size={13} />} onChoose={onChoose} />
              </>
            }
          />
        ) : (
          <Target row={left} />
        )}
      </div>
    </>
  );
}

function useIsJudge(): (node: string) => boolean {
  const { catalog, store } = useOpenLoop();
  return (node) => {
    const kind = kindOf(catalog, store.getState().document.nodes[node]?.kind);
    return kind?.outputs.some(({ type }) => type === "Scores") === true;
  };
}

interface SiblingsProps {
  row: SampleRow;
  siblings: readonly SampleRow[];
  onChoose: (id: string) => void;
}

function Siblings({ row, siblings, onChoose }: SiblingsProps) {
  if (siblings.length < 2) return null;
  return siblings.slice(0, 8).map((sibling, index) => (
    <button
      key={idOf(sibling)}
      type="button"
      aria-label={`Answer ${index + 1}, of ${sibling.node}`}
      aria-pressed={sibling === row}
      className="tabular size-5 rounded-1 text-xs hover:bg-hover aria-pressed:bg-accent-soft aria-pressed:text-accent-text"
      onClick={() => onChoose(idOf(sibling))}
    >
      {index + 1}
    </button>
  ));
}

interface JumpProps extends Pick<SiblingsProps, "onChoose"> {
  to: SampleRow | null | undefined;
  icon: ReactNode;
}

function Jump({ to, icon, onChoose }: JumpProps) {
  if (!to) return null;
  return (
    <Button size="small" look="quiet" icon={icon} onClick={() => onChoose(idOf(to))}>
      {to.node}
    </Button>
  );
}

function Target({ row }: { row: SampleRow }) {
  const target = sampleText(row.target);
  return (
    <section
      aria-label="Expected answer"
      className="flex min-h-0 w-64 shrink-0 flex-col border-line border-l max-lg:w-44"
    >
      <h3 className="flex min-h-9 items-center px-3 text-muted text-sm">Expected answer</h3>
      <div className="min-h-0 flex-1 overflow-y-auto px-3 pb-2 font-mono text-sm">
        <p className="whitespace-pre-wrap wrap-anywhere">{target === "" ? "–" : target}</p>
        {row.finished === false ? (
          <Badge tone="warning" className="mt-2 font-sans text-xs">
            truncated
          </Badge>
        ) : null}
        <div className="-mx-3 mt-2">
          <SourceNotes />
        </div>
      </div>
    </section>
  );
}

const NONE: readonly SampleTokens[] = [];

function useSampleTokens(
  step: number,
  rows: readonly SampleRow[],
): ReadonlyMap<string, SampleTokens> {
  const live = useLiveRun();
  const found = useQuery({
    queryKey: ["samples", live?.id, step, "tokens"],
    queryFn: () => fetchSampleTokens(live?.id ?? "", step),
    enabled: live !== null && rows.some((row) => row.has_tokens),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const known = found.data?.rows ?? NONE;
  return useMemo(() => {
    const texts = new Map(rows.map((row) => [idOf(row), sampleText(row.completion)]));
    const own = known.filter((tokens) => isOf(tokens, texts.get(String(tokens.id))));
    // The first of each row counts.
    return new Map(own.toReversed().map((tokens) => [String(tokens.id), tokens]));
  }, [known, rows]);
}

/** Whether it was this text that was learned: a lesson that was made of a row has its id, and other words. */
export function isOf({ pieces }: Pick<SampleTokens, "pieces">, completion: string | undefined) {
  const words = (text: string) => text.replace(/⟨\w+⟩/g, "").trimEnd();
  return completion !== undefined && words(pieces.join("")) === words(completion);
}

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
