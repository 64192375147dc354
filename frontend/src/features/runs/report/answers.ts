/** What a person asks of a run that has ended, and the answers of its report. Pure. */
import type { Bodies } from "@/api/types";
import { formatCount, formatMetric, formatPlural, formatSeconds, formatShare } from "@/lib/format";

export type Experiment = Bodies["Experiment"];
export type ProbeResult = Bodies["ProbeResult"];

export type Tone = "good" | "bad" | "open";
export interface Answer {
  question: string;
  text: string;
  /** `open`: it is not known yet, and can be found out. */
  tone?: Tone;
  /** A page with more of it, and what that is called. */
  more?: { href: string; label: string };
}

export const mainResult = (found: Experiment): ProbeResult | null =>
  found.results.find(({ is_main }) => is_main) ?? found.results[0] ?? null;

/** Ten questions, in the order in which they come up. */
export function answersOf(found: Experiment): Answer[] {
  return [
    result(found),
    againstWhat(found),
    howSure(found),
    howLong(found),
    checkpoint(found),
    wentWrong(found),
    next(found),
    timeWent(found),
    cost(found),
    again(found),
  ];
}

function result(found: Experiment): Answer {
  const question = "Result";
  const main = mainResult(found);
  if (found.error) return { question, text: found.error, tone: "bad" };
  if (!main) return { question, text: "Not known: no evaluation has read anything.", tone: "open" };
  const { start, best, end, better } = main;
  const isUp = better === "lower" ? end.value < start.value : end.value > start.value;
  const at =
    best.step === end.step ? "" : `, at best ${formatMetric(best.value)} in step ${best.step}`;
  const text = `${main.metric} ${formatMetric(start.value)} → ${endText(main)}${at}`;
  return end.step === start.step
    ? { question, text }
    : { question, text, tone: isUp ? "good" : "bad" };
}

export function endText({ end, error }: ProbeResult): string {
  return `${formatMetric(end.value)}${error ? ` ± ${formatMetric(error)}` : ""}`;
}

function againstWhat(found: Experiment): Answer {
  const question = "Against what";
  if (found.control) return { question, text: `This run is a control: ${found.control}` };
  const more = { href: `/runs/${encodeURIComponent(found.run)}/controls`, label: "Controls" };
  if (found.controls.length === 0) {
    return { question, text: "No control has been run.", tone: "open", more };
  }
  const text = found.controls
    .map(({ kind, end, leads }) => `${kind} ${formatMetric(end)} (${leadText(leads)})`)
    .join(", ");
  const leads = found.controls.map((control) => control.leads);
  const tone = leads.includes(false) ? "bad" : leads.includes(null) ? "open" : "good";
  return { question, text, tone, more };
}

export function leadText(leads: boolean | null): string {
  if (leads === null) return "too few seeds to say";
  return leads ? "the loop leads" : "within the spread";
}

function howSure(found: Experiment): Answer {
  const question = "How sure";
  const main = mainResult(found);
  if (!main) return { question, text: "–" };
  const rows = main.rows ? ` Each reading is over ${formatPlural(main.rows, "row")}.` : "";
  const { seeds } = found;
  if (!seeds || seeds.spread === null) {
    return { question, text: `One seed, so the spread is not known.${rows}`, tone: "open" };
  }
  const spread = `${formatMetric(seeds.mean)} ± ${formatMetric(seeds.spread)}`;
  return { question, text: `${spread} over ${formatPlural(seeds.runs.length, "seed")}.${rows}` };
}

function howLong({ duration }: Experiment): Answer {
  const attempts = duration.attempts > 1 ? ` in ${duration.attempts} attempts` : "";
  const learned = formatCount(duration.learned_tokens);
  const written = formatCount(duration.written_tokens);
  return {
    question: "How long",
    text: `${formatSeconds(duration.seconds)}${attempts}, ${formatPlural(duration.steps, "step")}; ${written} tokens generated, ${learned} learned from`,
  };
}

function checkpoint({ checkpoints, duration }: Experiment): Answer {
  const question = "Which checkpoint";
  const { best, kept } = checkpoints;
  if (kept.length === 0) return { question, text: "None was kept.", tone: "bad" };
  const last = kept.at(-1);
  if (best === null) return { question, text: `Step ${last}, the last; none was marked as best.` };
  if (!kept.includes(best)) {
    return {
      question,
      text: `Step ${last}; the best, step ${best}, is no longer kept.`,
      tone: "bad",
    };
  }
  const isEnd = best === duration.steps;
  return {
    question,
    text: isEnd ? `Step ${best}, the last and the best` : `Step ${best}, the best`,
  };
}

function wentWrong({ alerts, error }: Experiment): Answer {
  const question = "What went wrong";
  const open = alerts.filter(({ cleared }) => !cleared);
  if (open.length === 0 && !error) {
    const cleared = alerts.length > 0 ? ` ${formatPlural(alerts.length, "alert")} cleared.` : "";
    return { question, text: `Nothing that lasted.${cleared}` };
  }
  const [first] = open;
  const rest = open.length > 1 ? ` And ${open.length - 1} more.` : "";
  const text = first ? `${nodeFirst(first.node, first.message)}.${rest}` : (error ?? "");
  return { question, text: text.replace("..", "."), tone: "bad" };
}

/** Many messages begin with the node already. */
function nodeFirst(node: string | null, message: string): string {
  return node === null || message.startsWith(node) ? message : `${node}: ${message}`;
}

function next({ next: steps }: Experiment): Answer {
  return { question: "What next", text: steps[0]?.text ?? "Nothing is left open." };
}

const NAMED = 3;

function timeWent({ duration, bottleneck }: Experiment): Answer {
  const longest = duration.stages
    .slice(0, NAMED)
    .map(({ name, share }) => `${name} ${formatShare(share)}`)
    .join(", ");
  const slowest = bottleneck ? `; bottleneck ${bottleneck}` : "";
  return { question: "Where the time went", text: `${longest || "–"}${slowest}` };
}

function cost({ spent, duration }: Experiment): Answer {
  const question = "What it cost";
  if (spent.gpus === 0)
    return { question, text: `${formatSeconds(duration.seconds)} of this machine, no GPU` };
  const hours = `${spent.hours.toFixed(2)} GPU-hours on ${spent.hardware}`;
  if (spent.cost === null) return { question, text: `${hours}; no price is set` };
  return {
    question,
    text: `${hours}, ${spent.cost.toFixed(2)} at ${spent.hourly_price} each`,
  };
}

function again({ command, seed }: Experiment): Answer {
  return { question: "How to run it again", text: `${command} (seed ${seed})` };
}
