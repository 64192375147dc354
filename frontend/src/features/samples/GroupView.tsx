import { useQuery } from "@tanstack/react-query";
import { ArrowLeft, ArrowRight } from "lucide-react";
import { type ReactNode, useMemo, useState } from "react";
import { fetchSampleTokens } from "@/api/routes";
import type { SampleRow, SampleTokens } from "@/api/types";
import { kindOf } from "@/graph/geometry";
import { useLiveRun } from "@/live/hooks";
import { useOpenLoop } from "@/state/document/context";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { GroupList } from "./GroupList";
import { childrenOf, groupsOf, idOf, parentOf, rootOf, type Sorting, undecidedOf } from "./groups";
import { SamplePane } from "./SamplePane";
import { SourceNotes } from "./SourceNotes";
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
          links={<Up row={left} rows={rows} onChoose={onChoose} />}
        />
        {right ? (
          <SamplePane
            row={right}
            title={numberOf(right, answers, `on ${left.node}’s text`)}
            tokens={tokens.get(idOf(right)) ?? null}
            view={view}
            onView={setView}
            links={<Siblings row={right} rows={rows} siblings={answers} onChoose={onChoose} />}
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

interface LinksProps {
  row: SampleRow;
  rows: readonly SampleRow[];
  siblings?: readonly SampleRow[];
  onChoose: (id: string) => void;
}

function Up({ row, rows, onChoose }: LinksProps) {
  const above = parentOf(row, rows);
  return above ? <Jump to={above} icon={<ArrowLeft size={13} />} onChoose={onChoose} /> : null;
}

function Siblings({ row, rows, siblings = [], onChoose }: LinksProps) {
  const [below] = childrenOf(row, rows);
  return (
    <>
      {siblings.length > 1
        ? siblings.slice(0, 8).map((sibling, place) => (
            <button
              key={idOf(sibling)}
              type="button"
              aria-label={`Answer ${place + 1}, of ${sibling.node}`}
              aria-pressed={sibling === row}
              className="tabular size-5 rounded-1 text-xs hover:bg-hover aria-pressed:bg-accent-soft aria-pressed:text-accent-text"
              onClick={() => onChoose(idOf(sibling))}
            >
              {place + 1}
            </button>
          ))
        : null}
      {below ? <Jump to={below} icon={<ArrowRight size={13} />} onChoose={onChoose} /> : null}
    </>
  );
}

interface JumpProps extends Pick<LinksProps, "onChoose"> {
  to: SampleRow;
  icon: ReactNode;
}

function Jump({ to, icon, onChoose }: JumpProps) {
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
