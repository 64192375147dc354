import { Copy, Route } from "lucide-react";
import type { ReactNode } from "react";
import type { SampleRow, SampleTokens } from "@/api/types";
import { softColor } from "@/lib/colors";
import { formatMetric } from "@/lib/format";
import { useNodeColor } from "@/state/document/context";
import { followRow } from "@/state/lit";
import { Badge } from "@/ui/Badge";
import { classes } from "@/ui/classes";
import { IconButton } from "@/ui/IconButton";
import { Segmented } from "@/ui/Segmented";
import { copySample, sampleText } from "./sampleText";
import {
  fullValue,
  groundOf,
  isSigned,
  type Shade,
  shadeOf,
  type TokenView,
  tokenLines,
  tokenTitle,
  VIEWS,
  valuesOf,
  viewsOf,
} from "./shades";

interface SamplePaneProps {
  row: SampleRow;
  title: string;
  tokens: SampleTokens | null;
  view: TokenView;
  onView: (view: TokenView) => void;
  undecided?: readonly string[];
  links?: ReactNode;
}

export function SamplePane(props: SamplePaneProps) {
  const { row, title, tokens, view, onView, undecided = [], links } = props;
  const color = useNodeColor(row.node ?? "");
  const views = tokens ? viewsOf(tokens) : [];
  const shown = views.includes(view) ? view : views[0];
  return (
    <section
      aria-label={`${row.node ?? "text"}, ${title}`}
      className="flex min-h-0 min-w-0 flex-1 flex-col border-line border-l"
    >
      <div className="flex max-h-17 min-h-9 shrink-0 flex-wrap items-center gap-x-2 gap-y-1 overflow-y-auto px-3 py-1 text-sm">
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
        {row.node ? (
          <IconButton
            label="Follow this row through the graph"
            size="small"
            onClick={() => followRow(row.node ?? "")}
            icon={<Route size={13} />}
          />
        ) : null}
        <IconButton
          label="Copy as JSON"
          size="small"
          onClick={() => copySample(row)}
          icon={<Copy size={13} />}
        />
      </div>
      <div tabIndex={0} className="flex min-h-0 flex-1 flex-col overflow-y-auto">
        <div className="flex-1 px-3 pb-2">
          {tokens && shown ? (
            <TokenText tokens={tokens} view={shown} color={color} />
          ) : (
            <Lines lines={sampleText(row.completion).split("\n")} color={color} />
          )}
        </div>
        {tokens && shown ? <Legend tokens={tokens} view={shown} /> : null}
      </div>
    </section>
  );
}

function ScoreBadge({ name, value }: { name: string; value: number | null }) {
  const tone = !value ? "neutral" : value > 0 ? "success" : "error";
  return (
    <Badge tone={tone} className="text-xs" title={`Score of ${name}`}>
      {name} <span className="tabular">{formatMetric(value)}</span>
    </Badge>
  );
}

function Legend({ tokens, view }: { tokens: SampleTokens; view: TokenView }) {
  const full = formatMetric(fullValue(valuesOf(tokens, view)));
  const swatch = (tone: Shade["tone"], text: string) => (
    <span className="flex items-center gap-1">
      <span
        aria-hidden="true"
        className="inline-block h-3 w-6 rounded-[2px]"
        style={{ background: groundOf({ tone, strength: 1 }) }}
      />{" "}
      {text}
    </span>
  );
  return (
    <p className="tabular flex shrink-0 flex-wrap items-center gap-x-3 gap-y-0.5 border-line border-t px-3 py-1 text-muted text-xs">
      {isSigned(view) ? (
        <>
          {swatch("bad", `−${full}`)}
          {swatch("good", `+${full}`)}
        </>
      ) : (
        swatch("plain", `up to ${full}`)
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

interface TokenTextProps {
  tokens: SampleTokens;
  view: TokenView;
  color: string;
}

function TokenText({ tokens, view, color }: TokenTextProps) {
  const values = valuesOf(tokens, view);
  const full = fullValue(values);
  const shown = (place: number, text: string) => {
    const isTrained = tokens.mask[place] !== false;
    const isScored = view === "ofScores" || isTrained;
    return (
      <span
        key={place}
        title={tokenTitle(tokens, place)}
        data-token={place}
        className={classes(
          "rounded-[2px]",
          !isTrained && "text-muted underline decoration-dotted underline-offset-4",
          tokens.clipped[place] &&
            "underline decoration-2 decoration-warning-mark underline-offset-4",
        )}
        style={{ background: isScored ? groundOf(shadeOf(values[place], view, full)) : undefined }}
      >
        {text}
      </span>
    );
  };
  const lines = tokenLines(tokens.pieces).map((line) =>
    line.map(({ place, text }) => shown(place, text)),
  );
  return <Lines lines={lines} color={color} />;
}

function Lines({ lines, color }: { lines: readonly ReactNode[]; color: string }) {
  return (
    <ol className="flex flex-col gap-1 font-mono text-sm leading-6">
      {lines.map((line, index) => (
        <li key={index} className="flex items-start gap-2">
          <span
            aria-hidden="true"
            className="tabular mt-0.5 flex h-5 min-w-5 shrink-0 items-center justify-center rounded-full px-1 font-sans text-xs"
            style={{ background: softColor(color), color }}
          >
            {index + 1}
          </span>
          <span className="min-w-0 whitespace-pre-wrap wrap-anywhere">{line}</span>
        </li>
      ))}
    </ol>
  );
}
