import type { SampleTokens } from "@/api/types";
import { softColor } from "@/lib/colors";
import { classes } from "@/ui/classes";
import {
  fullValue,
  groundOf,
  shadeOf,
  type TokenLine,
  type TokenView,
  tokenLines,
  tokenTitle,
  valuesOf,
} from "./shades";

interface TokenTextProps {
  tokens: SampleTokens;
  view: TokenView;
  /** Of who wrote it. */
  color: string;
}

/** A text line by line, each token shaded by what the loss saw of it. */
export function TokenText({ tokens, view, color }: TokenTextProps) {
  const values = valuesOf(tokens, view);
  const full = fullValue(values);
  return (
    <ol className="flex flex-col gap-1 font-mono text-sm leading-6">
      {tokenLines(tokens.pieces).map((line, number) => (
        <Line key={number} number={number + 1} color={color}>
          <Tokens line={line} tokens={tokens} view={view} values={values} full={full} />
        </Line>
      ))}
    </ol>
  );
}

interface TokensProps {
  line: TokenLine;
  tokens: SampleTokens;
  view: TokenView;
  values: readonly (number | null)[];
  full: number;
}

function Tokens({ line, tokens, view, values, full }: TokensProps) {
  return line.places.map(({ place, text }) => {
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
  });
}

/** A text of which nothing is known by the token. */
export function PlainText({ text, color }: { text: string; color: string }) {
  return (
    <ol className="flex flex-col gap-1 font-mono text-sm leading-6">
      {text.split("\n").map((line, number) => (
        <Line key={number} number={number + 1} color={color}>
          {line}
        </Line>
      ))}
    </ol>
  );
}

function Line({
  number,
  color,
  children,
}: {
  number: number;
  color: string;
  children: React.ReactNode;
}) {
  return (
    <li className="flex items-start gap-2">
      <span
        aria-hidden="true"
        className="tabular mt-0.5 flex h-5 min-w-5 shrink-0 items-center justify-center rounded-full px-1 font-sans text-xs"
        style={{ background: softColor(color), color }}
      >
        {number}
      </span>
      <span className="min-w-0 whitespace-pre-wrap wrap-anywhere">{children}</span>
    </li>
  );
}
