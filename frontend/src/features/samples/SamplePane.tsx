import { Copy } from "lucide-react";
import type { ReactNode } from "react";
import { toast } from "sonner";
import type { SampleRow, SampleTokens } from "@/api/types";
import { formatMetric } from "@/lib/format";
import { useNodeColor } from "@/state/document/context";
import { Badge } from "@/ui/Badge";
import { IconButton } from "@/ui/IconButton";
import { Segmented } from "@/ui/Segmented";
import { sampleText } from "./sampleText";
import { fullValue, isSigned, type TokenView, VIEWS, valuesOf, viewsOf } from "./shades";
import { PlainText, TokenText } from "./TokenText";

interface SamplePaneProps {
  row: SampleRow;
  /** Which of several it is: "solution 2 of 5". */
  title: string;
  tokens: SampleTokens | null;
  view: TokenView;
  onView: (view: TokenView) => void;
  /** Who judged it in words that hold no verdict. */
  undecided?: readonly string[];
  /** Ways to what it answers to, or what answers to it. */
  links?: ReactNode;
}

/** One text with what it was worth, and what the loss saw of it. */
export function SamplePane({
  row,
  title,
  tokens,
  view,
  onView,
  undecided = [],
  links,
}: SamplePaneProps) {
  const color = useNodeColor(row.node ?? "");
  const views = tokens ? viewsOf(tokens) : [];
  const shown = views.includes(view) ? view : views[0];
  const copy = () => {
    navigator.clipboard.writeText(JSON.stringify(row, null, 2)).then(
      () => toast("Copied the sample"),
      () => toast.error("The browser blocked access to the clipboard."),
    );
  };
  return (
    <section
      aria-label={`${row.node ?? "text"}, ${title}`}
      className="flex min-h-0 min-w-0 flex-1 flex-col border-line border-l"
    >
      <div className="flex min-h-9 shrink-0 flex-wrap items-center gap-2 px-3 py-1 text-sm">
        <span className="size-2.5 shrink-0 rounded-[3px]" style={{ background: color }} />
        <b>{row.node}</b>
        <span className="min-w-0 truncate text-muted">{title}</span>
        {links}
        <span className="flex-1" />
        {Object.entries(row.scores)
          .filter(([scorer]) => !undecided.includes(scorer))
          .map(([scorer, score]) => (
            <ScoreBadge key={scorer} name={scorer} value={score ?? null} />
          ))}
        {undecided.map((judge) => (
          <Badge
            key={judge}
            tone="warning"
            className="text-xs"
            title={`What ${judge} wrote contains no valid verdict: it gives no score.`}
          >
            {judge} no verdict
          </Badge>
        ))}
        {typeof row.reward === "number" ? <ScoreBadge name="reward" value={row.reward} /> : null}
        {shown && views.length > 1 ? (
          <Segmented
            label={`Shade tokens of ${row.node} by`}
            value={shown}
            options={VIEWS.filter(({ value }) => views.includes(value))}
            onChange={onView}
          />
        ) : null}
        <IconButton label="Copy as JSON" size="small" onClick={copy}>
          <Copy size={13} />
        </IconButton>
      </div>
      <div tabIndex={0} className="min-h-0 flex-1 overflow-y-auto px-3 pb-2">
        {tokens && shown ? (
          <TokenText tokens={tokens} view={shown} color={color} />
        ) : (
          <PlainText text={sampleText(row.completion)} color={color} />
        )}
      </div>
      {tokens && shown ? <Legend tokens={tokens} view={shown} /> : null}
    </section>
  );
}

function ScoreBadge({ name, value }: { name: string; value: number | null }) {
  const tone = value === null ? "neutral" : value > 0 ? "success" : value < 0 ? "error" : "neutral";
  return (
    <Badge tone={tone} className="text-xs" title={`Score of ${name}`}>
      {name} <span className="tabular">{formatMetric(value)}</span>
    </Badge>
  );
}

/** What the shades mean. */
function Legend({ tokens, view }: { tokens: SampleTokens; view: TokenView }) {
  const full = formatMetric(fullValue(valuesOf(tokens, view)));
  const swatch = (tone: string) => (
    <span
      aria-hidden="true"
      className="inline-block h-3 w-6 rounded-[2px]"
      style={{ background: `color-mix(in srgb, ${tone} 42%, transparent)` }}
    />
  );
  return (
    <p className="tabular flex shrink-0 flex-wrap items-center gap-x-3 gap-y-0.5 border-line border-t px-3 py-1 text-muted text-xs">
      {isSigned(view) ? (
        <>
          <span className="flex items-center gap-1">
            {swatch("var(--error)")} −{full}
          </span>
          <span className="flex items-center gap-1">
            {swatch("var(--success-mark)")} +{full}
          </span>
        </>
      ) : (
        <span className="flex items-center gap-1">
          {swatch("var(--accent)")} up to {full}
        </span>
      )}
      {tokens.mask.includes(false) ? (
        <span className="underline decoration-dotted underline-offset-4">not trained</span>
      ) : null}
      {tokens.clipped.includes(true) ? (
        <span className="underline decoration-2 decoration-warning-mark underline-offset-4">
          clipped
        </span>
      ) : null}
      <span>
        learned by {tokens.by} with {tokens.algorithm}
      </span>
    </p>
  );
}
