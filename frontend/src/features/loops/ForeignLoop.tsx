import type { ReactNode } from "react";
import type { Catalog, Diagnostic, ImportedLoop, SettingFate } from "@/api/types";
import { worstOf } from "@/lib/estimate";
import { formatBytes, formatPlural, formatSeconds } from "@/lib/format";
import { useForeign } from "@/state/foreign";
import { classes } from "@/ui/classes";
import { LoopSketch } from "@/ui/LoopSketch";
import { MemoryBar } from "@/ui/MemoryBar";
import { RichText } from "@/ui/RichText";
import { SeverityIcon } from "@/ui/SeverityIcon";
import { Loading } from "@/ui/States";

/** What a configuration becomes: graph, memory, time, findings, and what was made of its settings. */
export function ForeignLoop({ catalog }: { catalog: Catalog }) {
  const { found, isReading } = useForeign();
  if (isReading) return <Loading label="Reading the configuration" />;
  if (!found) return null;
  const of = (kind: SettingFate["kind"]) =>
    found.settings.filter((setting) => setting.kind === kind);
  const { diagnostics } = found.check.report;
  return (
    <section aria-label="The loop" className="flex flex-col gap-4 border-line border-t pt-4">
      <div className="grid gap-4 md:grid-cols-[1.4fr_1fr]">
        <div className="flex h-36 items-center justify-center rounded-2 border border-line bg-canvas p-3">
          <LoopSketch catalog={catalog} sketch={found.sketch} />
        </div>
        <Costs found={found} />
      </div>
      <Findings diagnostics={diagnostics} />
      <Settings title="Not understood" settings={of("not_understood")} isOpen />
      {found.assumptions.length > 0 ? (
        <Group title="Assumed" count={found.assumptions.length} isOpen>
          <ul className="flex flex-col gap-1 text-xs">
            {found.assumptions.map((text) => (
              <li key={text}>
                <RichText text={text} />
              </li>
            ))}
          </ul>
        </Group>
      ) : null}
      <Settings title="Not carried" settings={of("not_carried")} />
      <Settings title="Carried" settings={of("carried")} />
    </section>
  );
}

function Costs({ found }: { found: ImportedLoop }) {
  const { estimate } = found.check;
  const worst = estimate ? worstOf(estimate.gpus) : null;
  return (
    <dl className="grid grid-cols-[auto_1fr] content-start gap-x-4 gap-y-1.5 text-sm">
      <dt className="text-muted">Framework</dt>
      <dd>
        {found.framework} {found.version}, {found.trainer}
      </dd>
      <dt className="text-muted">Step</dt>
      <dd>{estimate?.step_seconds == null ? "not known" : formatSeconds(estimate.step_seconds)}</dd>
      <dt className="text-muted">Memory</dt>
      <dd className="min-w-0">
        {worst === null || worst.peak_bytes === null ? (
          "not known"
        ) : (
          <>
            <span className={classes(worst.fits === false && "text-error")}>
              {formatBytes(worst.peak_bytes)} of {formatBytes(worst.usable_bytes)}
            </span>
            <MemoryBar gpu={worst} stage={null} height={10} />
          </>
        )}
      </dd>
      <dt className="text-muted">Settings</dt>
      <dd>{formatPlural(found.settings.length, "setting")}</dd>
    </dl>
  );
}

function Findings({ diagnostics }: { diagnostics: readonly Diagnostic[] }) {
  if (diagnostics.length === 0) return null;
  return (
    <Group title="Findings" count={diagnostics.length} isOpen>
      <ul className="flex flex-col gap-1 text-xs">
        {diagnostics.map((problem, index) => (
          <li key={index} className="flex gap-2">
            <SeverityIcon severity={problem.severity} />
            <span>
              <RichText text={problem.message} />
            </span>
          </li>
        ))}
      </ul>
    </Group>
  );
}

interface SettingsProps {
  title: string;
  settings: readonly SettingFate[];
  isOpen?: boolean;
}

function Settings({ title, settings, isOpen = false }: SettingsProps) {
  if (settings.length === 0) return null;
  return (
    <Group title={title} count={settings.length} isOpen={isOpen}>
      <ul className="flex flex-col gap-1 text-xs">
        {settings.map(({ name, value, line, to, why }, index) => (
          <li key={index} className="grid gap-x-3 md:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
            <span className="break-words font-mono" title={line ? `Line ${line}` : undefined}>
              {name} <span className="text-muted">{value}</span>
            </span>
            <span className="break-words text-muted">
              <RichText text={why || `\`${to}\``} />
            </span>
          </li>
        ))}
      </ul>
    </Group>
  );
}

interface GroupProps {
  title: string;
  count: number;
  isOpen?: boolean;
  children: ReactNode;
}

function Group({ title, count, isOpen = false, children }: GroupProps) {
  return (
    <details open={isOpen}>
      <summary className="cursor-pointer font-semibold text-sm">
        {title} <span className="font-normal text-muted">({count})</span>
      </summary>
      <div className="pt-1.5 pl-4">{children}</div>
    </details>
  );
}
