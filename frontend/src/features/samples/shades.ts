import type { SampleTokens } from "@/api/types";
import { formatMetric } from "@/lib/format";

export type TokenView = "ofAdvantage" | "ofKl" | "ofRatio" | "ofScores" | "ofEntropy";

export const VIEWS: readonly { value: TokenView; label: string; title: string }[] = [
  {
    value: "ofAdvantage",
    label: "advantage",
    title: "Whether the token is made more or less likely",
  },
  { value: "ofKl", label: "KL", title: "KL to the reference" },
  { value: "ofRatio", label: "ratio", title: "Log ratio of the new policy to the old one" },
  { value: "ofScores", label: "scores", title: "Scores of individual tokens" },
  { value: "ofEntropy", label: "entropy", title: "Entropy of the next-token distribution" },
];

type Values = readonly (number | null)[];

const READ: Record<TokenView, (tokens: SampleTokens) => Values> = {
  ofAdvantage: (tokens) => tokens.advantage,
  ofKl: (tokens) => tokens.kl,
  ofRatio: (tokens) => tokens.log_ratio,
  ofScores: (tokens) => Object.values(tokens.rewards)[0] ?? [],
  ofEntropy: (tokens) => tokens.entropy,
};

export function valuesOf(tokens: SampleTokens, view: TokenView): Values {
  return READ[view](tokens);
}

/** Whether less than nothing is possible: then it helps or hurts. */
export function isSigned(view: TokenView): boolean {
  return view !== "ofKl" && view !== "ofEntropy";
}

export function viewsOf(tokens: SampleTokens): TokenView[] {
  return VIEWS.map(({ value }) => value).filter((view) =>
    valuesOf(tokens, view).some((value) => value !== null && value !== 0),
  );
}

export interface Shade {
  tone: "good" | "bad" | "plain";
  strength: number;
}

export function fullValue(values: Values): number {
  return Math.max(1e-9, ...values.map((value) => Math.abs(value ?? 0)));
}

export function shadeOf(value: number | null | undefined, view: TokenView, full: number): Shade {
  const strength = Math.min(1, Math.abs(value ?? 0) / full);
  if (!isSigned(view)) return { tone: "plain", strength };
  return { tone: (value ?? 0) < 0 ? "bad" : "good", strength };
}

const GROUNDS = {
  good: "var(--success-mark)",
  bad: "var(--error)",
  plain: "var(--accent)",
} as const;
const STRONGEST = 42;

export function groundOf({ tone, strength }: Shade): string | undefined {
  if (strength < 0.02) return undefined;
  const share = Math.round(strength * STRONGEST);
  return `color-mix(in srgb, ${GROUNDS[tone]} ${share}%, transparent)`;
}

export function tokenTitle(tokens: SampleTokens, place: number): string {
  const said: string[] = [];
  const add = (name: string, value: number | null | undefined) => {
    if (typeof value === "number") said.push(`${name} ${formatMetric(value)}`);
  };
  if (tokens.mask[place] === false) said.push("not trained");
  else {
    add("advantage", tokens.advantage[place]);
    add("log ratio", tokens.log_ratio[place]);
    add("KL", tokens.kl[place]);
    add("log-prob", tokens.log_prob[place]);
    add("entropy", tokens.entropy[place]);
    if (tokens.clipped[place]) said.push("clipped");
  }
  for (const [scorer, values] of Object.entries(tokens.rewards)) add(scorer, values[place]);
  return said.join(" · ");
}

/** Tokens by the line in which they stand; one that has a line break in it ends its line. */
export function tokenLines(pieces: readonly string[]): { place: number; text: string }[][] {
  const lines: { place: number; text: string }[][] = [[]];
  for (const [place, piece] of pieces.entries()) {
    const parts = piece.split("\n");
    for (const [index, text] of parts.entries()) {
      if (index > 0) lines.push([]);
      if (text !== "" || parts.length === 1) lines.at(-1)?.push({ place, text });
    }
  }
  return lines;
}
