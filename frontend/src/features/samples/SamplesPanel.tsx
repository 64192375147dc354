import { useQuery } from "@tanstack/react-query";
import { ChevronLeft, ChevronRight, MessageSquareText, X } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { fetchSamples } from "@/api/routes";
import type { SampleRow } from "@/api/types";
import { formatMetric, formatPlural } from "@/lib/format";
import { mean } from "@/lib/statistics";
import { useLive, useLiveRun, useLiveVersion, useReplayStep } from "@/live/hooks";
import { isFinal } from "@/live/reducer";
import { setPreferences, usePreferences } from "@/state/preferences";
import { Button } from "@/ui/Button";
import { CONTROL } from "@/ui/control";
import { IconButton } from "@/ui/IconButton";
import { LabelledSelect } from "@/ui/LabelledSelect";
import { PanelHead } from "@/ui/PanelHead";
import { Segmented } from "@/ui/Segmented";
import type { SelectOption } from "@/ui/Select";
import { Empty, Failed, Loading } from "@/ui/States";
import { GroupView, usePins } from "./GroupView";
import { idOf, isWanted, rewardsOf, type Sorting, shortAnswer } from "./groups";
import { SampleTable, SourceNotes } from "./SampleTable";
import { sampleText } from "./sampleText";

const ORDERS: readonly SelectOption<Sorting>[] = [
  { value: "given", label: "original order" },
  { value: "best", label: "best reward first" },
  { value: "worst", label: "worst reward first" },
];

export function SamplesPanel() {
  const [chosen, setChosen] = useState<number | null>(null);
  const [writer, setWriter] = useState("");
  const [sorting, setSorting] = useState<Sorting>("given");
  const [filter, setFilter] = useState("");
  const view = usePreferences((state) => state.samplesView);
  // While a sample is read, newer steps do not take its place.
  const [open, setOpen] = useState<{ key: string; step: number | null } | null>(null);
  const { rows, steps, step, newest, isLoading, error } = useSampleRows(
    chosen ?? open?.step ?? null,
  );

  if (isLoading) return <Loading label="Loading samples" />;
  if (error && rows.length === 0)
    return <Failed title="The samples could not be loaded" error={error} />;
  if (step === null) {
    return (
      <Empty icon={<MessageSquareText size={24} />} title="No samples yet">
        Samples appear after the first step in which a model generates text.
      </Empty>
    );
  }
  const writers = [...new Set(rows.map(writerOf))].filter((name) => name !== "");
  const shown = rows.filter(
    (row) => (writer === "" || writerOf(row) === writer) && isWanted(row, filter.trim()),
  );
  const read = (key: string | null) => setOpen(key === null ? null : { key, step: step });
  return (
    <div className="flex h-full min-h-0 flex-col">
      <PanelHead>
        <StepChoice
          steps={steps}
          newest={newest}
          shown={step}
          chosen={chosen}
          onChoose={(one) => {
            setOpen(null);
            setChosen(one);
          }}
        />
        {writers.length > 1 ? (
          <LabelledSelect
            label="Node"
            value={writer}
            options={[
              { value: "", label: "all" },
              ...writers.map((name) => ({ value: name, label: name })),
            ]}
            onChange={(name) => {
              setOpen(null);
              setWriter(name);
            }}
          />
        ) : null}
        <LabelledSelect label="Order" value={sorting} options={ORDERS} onChange={setSorting} />
        <input
          role="searchbox"
          aria-label="Filter texts"
          placeholder="Filter"
          className={`${CONTROL} w-32 max-xl:w-16`}
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
        <span className="flex-1" />
        {chosen === null && open !== null && step !== newest ? (
          <span>step {step} is shown while its sample is open</span>
        ) : null}
        <span className="tabular max-xl:hidden">{formatPlural(shown.length, "row")}</span>
        <Segmented
          label="View of the samples"
          value={view}
          options={[
            { value: "byPrompt", label: "By prompt" },
            { value: "table", label: "Table" },
          ]}
          onChange={(samplesView) => setPreferences({ samplesView })}
        />
      </PanelHead>
      {view === "table" ? <SourceNotes /> : null}
      <PinnedPrompt
        onShow={(at, id) => {
          setChosen(at);
          setOpen({ key: id, step: at });
          setPreferences({ samplesView: "byPrompt" });
        }}
      />
      {view === "byPrompt" ? (
        <GroupView
          rows={shown}
          step={step}
          sorting={sorting}
          chosen={open?.key ?? null}
          onChoose={read}
        />
      ) : (
        <SampleTable rows={shown} sorting={sorting} open={open?.key ?? null} onOpen={read} />
      )}
    </div>
  );
}

function writerOf(row: SampleRow): string {
  return row.node ?? "";
}

const LIMIT = 2000;

function PinnedPrompt({ onShow }: { onShow: (step: number, id: string) => void }) {
  const live = useLiveRun();
  const { pinned, pin } = usePins();
  const all = useQuery({
    queryKey: ["samples", live?.id, "all"],
    queryFn: () => fetchSamples(live?.id ?? "", null, LIMIT),
    enabled: live !== null && pinned !== null,
    refetchInterval: () => (live?.connection === "live" ? 10_000 : false),
  });
  if (pinned === null) return null;
  const rows = (all.data?.rows ?? []).filter((row) => sampleText(row.prompt) === pinned);
  const steps = [...new Set(rows.map((row) => row.step ?? 0))].toSorted((a, b) => a - b);
  return (
    <section
      aria-label="The pinned prompt over time"
      className="flex shrink-0 items-stretch gap-2 overflow-x-auto border-line border-b bg-sunken px-3 py-1.5 text-xs"
    >
      <span className="flex max-w-56 shrink-0 items-center gap-1">
        <span className="line-clamp-2 font-mono" title={pinned}>
          {pinned}
        </span>
        <IconButton
          label="Unpin the prompt"
          size="small"
          onClick={() => pin(null)}
          icon={<X size={13} />}
        />
      </span>
      {steps.map((step) => {
        const own = rows.filter((row) => row.step === step);
        const reward = mean(rewardsOf(own));
        const [first] = own;
        return (
          <button
            key={step}
            type="button"
            className="tabular flex shrink-0 flex-col rounded-2 border border-line bg-surface px-2 py-1 text-left hover:bg-hover"
            onClick={() => first && onShow(step, idOf(first))}
          >
            <span className="text-muted">
              step {step} · {formatPlural(own.length, "text")}
            </span>
            <span className="max-w-32 truncate font-mono">
              {shortAnswer(sampleText(first?.completion))}{" "}
              {reward !== null ? `· ${formatMetric(reward)}` : ""}
            </span>
          </button>
        );
      })}
      {all.isSuccess && steps.length < 2 ? (
        <span className="self-center text-muted">
          It was sampled in {steps.length === 1 ? "this step" : "no step"} so far; it appears here
          whenever it is sampled again.
        </span>
      ) : null}
    </section>
  );
}

interface StepChoiceProps {
  steps: readonly number[];
  newest: number | null;
  shown: number | null;
  chosen: number | null;
  onChoose: (step: number | null) => void;
}

export function StepChoice({ steps, newest, shown, chosen, onChoose }: StepChoiceProps) {
  const [typed, setTyped] = useState<string | null>(null);
  const now = chosen ?? shown ?? newest ?? 0;
  const earlier = steps.findLast((step) => step < now);
  const later = steps.find((step) => step > now);
  const settle = () => {
    const wanted = Number(typed);
    if (typed !== null && typed.trim() !== "" && Number.isFinite(wanted)) {
      onChoose(steps.findLast((step) => step <= wanted) ?? steps[0] ?? null);
    }
    setTyped(null);
  };
  return (
    <div className="flex items-center gap-1">
      <label className="flex items-center gap-2">
        Step
        <input
          inputMode="numeric"
          autoComplete="off"
          className={`${CONTROL} tabular w-14`}
          value={typed ?? String(now)}
          onChange={(event) => setTyped(event.target.value)}
          onBlur={settle}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            if (typed === null) onChoose(now);
            else settle();
          }}
        />
      </label>
      <IconButton
        size="small"
        label="Earlier step"
        refusal={earlier === undefined ? "No earlier step has texts" : null}
        onClick={() => onChoose(earlier ?? null)}
        icon={<ChevronLeft size={14} />}
      />
      <IconButton
        size="small"
        label="Later step"
        refusal={later === undefined ? "No later step has texts" : null}
        onClick={() => onChoose(later ?? null)}
        icon={<ChevronRight size={14} />}
      />
      <Button
        size="small"
        look="quiet"
        aria-pressed={chosen === null}
        className="tabular aria-pressed:bg-accent-soft aria-pressed:text-accent-text"
        onClick={() => onChoose(null)}
      >
        newest ({newest})
      </Button>
    </div>
  );
}

const MAX_ROWS = 1000;
/** How long the newest step stays on screen at least: what changes faster cannot be read. */
export const MIN_SHOWN = 4000;

/** Rows of one step; of the newest while none is chosen. Whole texts come from the run's folder. */
export function useSampleRows(chosen: number | null) {
  const live = useLiveRun();
  const version = useLiveVersion("samples");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version says that there are new samples
  const told = useMemo(() => [...new Set(live?.state.sampleSteps)], [live, version]);
  const newest = told.at(-1) ?? null;
  const isReplay = useReplayStep() !== null;
  const isOver = useLive("status", (one) => isFinal(one.run?.state ?? one.state.state), false);
  const settled = useSettled(newest);
  // In a replay one goes to a step to see it; after the end nothing newer comes.
  const shown = isReplay || isOver ? newest : settled;
  const step = chosen ?? shown;
  const query = useQuery({
    queryKey: ["samples", live?.id, step],
    queryFn: () => fetchSamples(live?.id ?? "", step, MAX_ROWS),
    enabled: live !== null && step !== null,
    placeholderData: (before) => (step === null ? undefined : before),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return {
    rows: query.data?.rows ?? [],
    steps: [...new Set([...(query.data?.steps ?? []), ...told])].toSorted((a, b) => a - b),
    /** Of which step the rows are: of one before, while those that are asked for are on their way. */
    step: query.data?.rows[0]?.step ?? step,
    newest,
    isLoading: query.isPending && step !== null,
    error: query.error,
  };
}

/** A value that changes at most every few seconds; the first is taken at once. */
function useSettled(value: number | null): number | null {
  const [settled, settle] = useState({ value, at: 0 });
  useEffect(() => {
    if (value === settled.value) return;
    const take = () => settle({ value, at: Date.now() });
    const wait = settled.value === null ? 0 : settled.at + MIN_SHOWN - Date.now();
    if (wait <= 0) {
      take();
      return;
    }
    const timer = setTimeout(take, wait);
    return () => clearTimeout(timer);
  }, [value, settled]);
  return settled.value;
}
