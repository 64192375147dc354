import { useState } from "react";
import { previewTokens } from "@/api/routes";
import type { Lengths, TokenText } from "@/api/types";
import { formatCount, formatPlural } from "@/lib/format";
import { classes } from "@/ui/classes";
import { LabelledSelect } from "@/ui/LabelledSelect";
import { Pager } from "@/ui/Pager";
import { Preview, usePreviewQuery } from "./preview";

const PAGE = 4;
const MEASURED = 2000;

export function TokensView({ node }: { node: string }) {
  const [offset, setOffset] = useState(0);
  const [reader, setReader] = useState<string | null>(null);
  const asked = usePreviewQuery(["tokens", node, reader, offset], (yaml, signal) =>
    previewTokens(
      { what: "tokens", yaml, node, reader, offset, count: PAGE, measure: MEASURED },
      signal,
    ),
  );
  return (
    <Preview asked={asked} loading="Tokenizing the rows" failed="The rows could not be tokenized">
      {(found) => (
        <div className="flex min-h-0 flex-1 max-lg:flex-col max-lg:overflow-y-auto">
          <section
            aria-label="Tokens"
            tabIndex={0}
            className="min-w-0 flex-1 overflow-y-auto px-4 py-3 max-lg:overflow-visible"
          >
            <div className="mb-3 flex flex-wrap items-center gap-x-4 gap-y-2 text-muted text-xs">
              <LabelledSelect
                label="Reader"
                value={found.reader}
                options={found.readers.map((name) => ({ value: name, label: name }))}
                onChange={setReader}
              />
              <span className="flex items-center gap-1.5">
                <span className={tokenLook(true)}>learned</span>
                <span className={tokenLook(false)}>context only</span>
              </span>
              <span className="flex-1" />
              <Pager
                size="small"
                hasPrevious={offset > 0}
                hasNext={found.texts.length > 0}
                onPrevious={() => setOffset(Math.max(0, offset - PAGE))}
                onNext={() => setOffset(offset + PAGE)}
              />
            </div>
            <ol className="flex flex-col gap-3">
              {found.texts.map((text) => (
                <Text key={`${text.row} ${text.side}`} text={text} />
              ))}
            </ol>
          </section>
          <aside
            aria-label="Lengths"
            className="w-[340px] shrink-0 overflow-y-auto border-line border-l p-4 max-lg:w-full max-lg:border-l-0"
          >
            {found.lengths ? <LengthChart lengths={found.lengths} /> : null}
            <p className="mt-3 text-muted text-xs">
              Vocabulary of the model: {formatCount(found.vocabulary)} tokens.
            </p>
          </aside>
        </div>
      )}
    </Preview>
  );
}

function tokenLook(isLearned: boolean): string {
  return classes(
    "my-px mr-px inline-block whitespace-pre rounded-[2px] px-0.5 leading-5",
    isLearned ? "bg-success-soft shadow-[inset_0_-2px_var(--success-mark)]" : "bg-hover",
  );
}

function Text({ text }: { text: TokenText }) {
  const hidden = text.count - text.tokens.length;
  return (
    <li className="rounded-2 border border-line bg-surface">
      <div className="flex gap-3 border-line border-b px-3 py-1.5 text-xs">
        <b className="font-mono font-semibold">{text.row}</b>
        {text.side === "whole" ? null : <span>{text.side}</span>}
        <span className="tabular text-muted">
          {formatPlural(text.count, "token")}, {text.learned} learned
        </span>
      </div>
      {text.problem ? (
        <p className="px-3 py-2 text-error text-xs">{text.problem}</p>
      ) : (
        <p className="px-3 py-2 font-mono text-xs leading-6">
          {text.tokens.map((token, place) => (
            <span
              key={place}
              title={`token ${token.id}, ${token.is_learned ? "learned" : "context only"}`}
              className={tokenLook(token.is_learned)}
            >
              {token.text.replaceAll("\n", "↵")}
            </span>
          ))}
          {hidden > 0 ? <span className="text-muted"> and {hidden} more</span> : null}
        </p>
      )}
    </li>
  );
}

const HEIGHT = 96;

function LengthChart({ lengths }: { lengths: Lengths }) {
  const { bins, width, limit, longest, mean, measured, over } = lengths;
  const most = Math.max(1, ...bins);
  const end = bins.length * width;
  const at = limit !== null && limit < end ? (limit / end) * 100 : null;
  const told = `${formatPlural(measured, "row")}, mean ${mean.toFixed(0)}, longest ${longest} tokens`;
  return (
    <section>
      <h2 className="mb-1 font-semibold text-sm">Length in tokens</h2>
      <p className="mb-3 text-muted text-xs">{told}</p>
      <div
        role="img"
        aria-label={`${told}: ${bins.join(", ")} rows in bins of ${width}`}
        className="relative flex items-end gap-px border-line border-b"
        style={{ height: HEIGHT }}
      >
        {bins.map((count, bin) => (
          <span
            key={bin}
            className="flex-1 rounded-t-[2px]"
            style={{
              height: count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT),
              background:
                limit !== null && bin * width > limit ? "var(--error)" : "var(--port-rows)",
            }}
          />
        ))}
        {at === null ? null : (
          <span
            className="absolute inset-y-0 border-error border-l-2 border-dashed"
            style={{ left: `${at}%` }}
          />
        )}
      </div>
      <div className="tabular mt-1 flex justify-between text-muted text-xs" aria-hidden="true">
        <span>0</span>
        <span>{end}</span>
      </div>
      <p className="mt-3 text-xs">
        {limit === null ? (
          lengths.limit_from
        ) : over > 0 ? (
          <span className="text-error">
            {over} of {formatPlural(measured, "row")} are longer than {formatCount(limit)} tokens (
            {lengths.limit_from}): {lengths.over_does}.
          </span>
        ) : (
          <>
            All fit: the limit is {formatCount(limit)} tokens ({lengths.limit_from}).
          </>
        )}
      </p>
    </section>
  );
}
