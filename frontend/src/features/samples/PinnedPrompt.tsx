import { useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { fetchSamples } from "@/api/routes";
import { formatMetric, formatPlural } from "@/lib/format";
import { useLiveRun } from "@/live/hooks";
import { IconButton } from "@/ui/IconButton";
import { idOf, shortAnswer } from "./groups";
import { usePins } from "./pins";
import { sampleText } from "./sampleText";

const LIMIT = 2000;

/** What was written for one prompt, step by step. */
export function PinnedPrompt({ onShow }: { onShow: (step: number, id: string) => void }) {
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
        <IconButton label="Unpin the prompt" size="small" onClick={() => pin(null)}>
          <X size={13} />
        </IconButton>
      </span>
      {steps.map((step) => {
        const own = rows.filter((row) => row.step === step);
        const rewards = own.flatMap(({ reward }) => (typeof reward === "number" ? [reward] : []));
        const mean = rewards.reduce((sum, one) => sum + one, 0) / Math.max(1, rewards.length);
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
              {rewards.length > 0 ? `· ${formatMetric(mean)}` : ""}
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
