import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Bodies, RunReport } from "@/api/types";
import {
  formatBytes,
  formatMetric,
  formatPlural,
  formatRate,
  formatSeconds,
  formatShare,
} from "@/lib/format";
import { Badge } from "@/ui/Badge";
import { kindTitle } from "../controls/arms";
import { type Experiment, endText, leadText, mainResult } from "./answers";
import { Predicted } from "./Predicted";
import { findingOf, memoryOf, ratesOf, timesOf } from "./predicted";
import { ResultChart } from "./ResultChart";

interface ReportBodyProps {
  found: Experiment;
  /** What was predicted and measured; null where the run wrote no report. */
  measured: RunReport | null;
}

/** Everything that the report says beyond the ten answers. */
export function ReportBody({ found, measured }: ReportBodyProps) {
  const main = mainResult(found);
  const evaluations = found.duration.stages
    .filter(({ is_evaluation }) => is_evaluation)
    .map(({ name }) => name);
  return (
    <>
      {found.changes.length > 0 ? (
        <Section title="What was changed">
          {found.parent ? (
            <p className="mb-1 text-sm">
              It began with a checkpoint of{" "}
              <Link
                href={`/runs/${encodeURIComponent(found.parent)}`}
                className="text-accent-text underline"
              >
                {found.parent}
              </Link>
              .
            </p>
          ) : null}
          <ul className="list-disc pl-5 text-sm">
            {found.changes.map((change) => (
              <li key={change}>{change}</li>
            ))}
          </ul>
        </Section>
      ) : null}
      {main ? (
        <Section title={`${main.title} (${main.metric})`}>
          <ResultChart result={main} />
        </Section>
      ) : null}
      {found.results.length > 0 ? (
        <Section title="Every evaluation">
          <Results results={found.results} />
        </Section>
      ) : null}
      <Controls found={found} />
      <Seeds found={found} />
      <Time found={found} />
      <Alerts alerts={found.alerts} />
      {found.next.length > 1 ? (
        <Section title="What next">
          <ol className="list-decimal pl-5 text-sm">
            {found.next.map(({ text }) => (
              <li key={text}>{text}</li>
            ))}
          </ol>
        </Section>
      ) : null}
      <Texts title="Good texts" samples={found.good} />
      <Texts title="Bad texts" samples={found.bad} />
      {measured ? (
        <Section title="Predicted and measured">
          <p className="mb-2 text-sm">{findingOf(measured, evaluations)}</p>
          <div className="flex flex-col gap-4">
            <Predicted title="Time" rows={timesOf(measured)} format={formatSeconds} />
            <Predicted
              title="Tokens per second while busy"
              rows={ratesOf(measured)}
              format={(rate) => (rate === null ? "–" : formatRate(rate, "tok"))}
            />
            <Predicted
              title={found.spent.gpus === 0 ? "Memory of a process" : "Memory of a GPU"}
              rows={memoryOf(measured)}
              format={formatBytes}
            />
          </div>
        </Section>
      ) : null}
    </>
  );
}

export function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section
      aria-label={title}
      className="break-inside-avoid overflow-x-auto rounded-2 border border-line bg-surface p-4"
    >
      <h2 className="mb-2 font-medium text-sm">{title}</h2>
      {children}
    </section>
  );
}

interface TableProps {
  label: string;
  /** The first one is that of the rows' names; the others are of numbers. */
  head: readonly string[];
  rows: readonly { key: string; cells: readonly ReactNode[] }[];
}

function NumberTable({ label, head, rows }: TableProps) {
  return (
    <table aria-label={label} className="w-full text-sm">
      <thead>
        <tr className="text-muted text-xs">
          {head.map((title, place) => (
            <th
              key={title}
              className={`py-1 font-medium ${place === 0 ? "text-left" : "pl-3 text-right"}`}
            >
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, cells: [name, ...numbers] }) => (
          <tr key={key} className="border-line border-t">
            <th scope="row" className="py-1.5 text-left font-normal">
              {name}
            </th>
            {numbers.map((cell, place) => (
              <td key={head[place + 1]} className="tabular py-1.5 pl-3 text-right">
                {cell}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Results({ results }: { results: Experiment["results"] }) {
  const rows = results.map((one) => ({
    key: one.metric,
    cells: [
      one.is_main ? <b key="name">{one.metric}</b> : one.metric,
      formatMetric(one.start.value),
      formatMetric(one.best.value),
      one.best.step,
      endText(one),
      one.rows ?? "–",
    ],
  }));
  return (
    <NumberTable
      label="Every evaluation"
      head={["Metric", "Start", "Best", "In step", "End", "Rows"]}
      rows={rows}
    />
  );
}

function Controls({ found }: { found: Experiment }) {
  if (found.controls.length === 0) return null;
  const rows = found.controls.map(({ kind, runs, end, spread, difference, leads }) => ({
    key: kind,
    cells: [
      kindTitle(kind),
      runs,
      `${formatMetric(end)}${spread === null ? "" : ` ± ${formatMetric(spread)}`}`,
      formatMetric(difference),
      <Badge key="leads" tone={leads ? "success" : "neutral"}>
        {leadText(leads)}
      </Badge>,
    ],
  }));
  return (
    <Section title="Controls">
      <NumberTable
        label="Controls"
        head={["Control", "Runs", "End", "Loop leads by", "Verdict"]}
        rows={rows}
      />
    </Section>
  );
}

function Seeds({ found: { seeds } }: { found: Experiment }) {
  if (!seeds || seeds.spread === null) return null;
  const rows = seeds.runs.map(({ run, seed, end }) => ({
    key: run,
    cells: [
      <Link
        key="run"
        href={`/runs/${encodeURIComponent(run)}`}
        className="text-accent-text underline"
      >
        {run}
      </Link>,
      seed,
      formatMetric(end),
    ],
  }));
  return (
    <Section
      title={`${formatPlural(seeds.runs.length, "seed")}: ${formatMetric(seeds.mean)} ± ${formatMetric(seeds.spread)}`}
    >
      <NumberTable label="Seeds" head={["Run", "Seed", "End"]} rows={rows} />
    </Section>
  );
}

function Time({ found: { duration } }: { found: Experiment }) {
  const line = (one: Bodies["TimeShare"]) => ({
    key: one.name,
    cells: [
      one.is_evaluation ? `${one.name} (evaluation)` : one.name,
      formatSeconds(one.seconds),
      formatShare(one.share),
    ],
  });
  return (
    <Section title="Where the time went">
      <div className="grid gap-x-8 gap-y-3 sm:grid-cols-2">
        <NumberTable
          label="Time of phases"
          head={["Phase", "Time", "Of the run"]}
          rows={duration.phases.map(line)}
        />
        <NumberTable
          label="Time of stages"
          head={["Stage", "Time", "Of all work"]}
          rows={duration.stages.map(line)}
        />
      </div>
    </Section>
  );
}

function Alerts({ alerts }: { alerts: Experiment["alerts"] }) {
  if (alerts.length === 0) return null;
  return (
    <Section title="What went wrong">
      <ul className="flex flex-col gap-2 text-sm">
        {alerts.map(({ code, node, message, hint, step, count, cleared }) => (
          <li key={`${code} ${node} ${message}`}>
            <Badge tone={cleared ? "neutral" : "warning"}>
              {cleared ? "cleared" : `step ${step ?? 0}`}
            </Badge>{" "}
            {node ? `${node}: ` : ""}
            {message}
            {count > 1 ? ` (${count} times)` : ""}
            {hint && !cleared ? <span className="text-muted"> {hint}</span> : null}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Texts({ title, samples }: { title: string; samples: Experiment["good"] }) {
  if (samples.length === 0) return null;
  return (
    <Section title={`${title}, step ${samples[0]?.step ?? 0}`}>
      <ul className="flex flex-col gap-3 text-sm">
        {samples.map(({ node, prompt, completion, target, score }) => (
          <li key={`${node} ${prompt}`}>
            <p className="text-muted text-xs">
              {node}, score {formatMetric(score)}
              {target === null ? "" : `, wanted ${target}`}
            </p>
            <p className="wrap-anywhere whitespace-pre-wrap font-mono text-xs">
              <span className="text-muted">{prompt}</span>
              {"\n"}
              {completion || "(empty)"}
            </p>
          </li>
        ))}
      </ul>
    </Section>
  );
}
