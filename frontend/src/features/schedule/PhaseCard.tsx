import type { JsonObject } from "@/api/types";
import { inputPort } from "@/document/canConnect";
import { portRef } from "@/document/edges";
import { type PhasePath, phaseSpecPath } from "@/document/phases";
import { indexProblems, problemsAt, toneOf } from "@/document/problems";
import { isObject, joinPath } from "@/lib/paths";
import { useCatalog, useDocument, useSync } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { classes } from "@/ui/classes";
import { PortMark } from "@/ui/PortMark";
import { SeverityIcon } from "@/ui/SeverityIcon";
import { PhaseTools } from "./PhaseTools";
import { listText, phaseLength, settingName } from "./phaseText";

interface PhaseCardProps {
  phase: JsonObject;
  at: PhasePath;
  isLast: boolean;
  /** Filled while the phase runs. */
  progress: number | null;
}

/** One phase of the strip: name, length, live ports, overrides; pressed, its settings open. */
export function PhaseCard({ phase, at, isLast, progress }: PhaseCardProps) {
  const isReadonly = useDocument((state) => state.isReadonly);
  const chosen = useSelection((state) => state.phase);
  const isChosen = chosen?.join() === at.join();
  const problems = useSync((state) => indexProblems(state.check?.report.diagnostics).loop);
  const worst = toneOf(useCatalog(), problemsAt(problems, joinPath(phaseSpecPath(at)), false));
  const learn = Array.isArray(phase.learn) ? phase.learn.map(String) : [];
  const overrides = isObject(phase.set) ? Object.entries(phase.set) : [];
  const index = at.at(-1) ?? 0;
  const name = String(phase.name ?? `phase ${index + 1}`);

  return (
    <article className={classes("phase-card group/phase", isChosen && "phase-card-chosen")}>
      <button
        type="button"
        className="flex min-h-0 w-full flex-1 flex-col gap-1 p-2 text-left"
        aria-pressed={isChosen}
        onClick={() => useSelection.getState().select({ phase: at })}
      >
        <span className="flex w-full items-center gap-1">
          <span className="min-w-0 flex-1 truncate font-semibold text-xs" title={name}>
            {name}
          </span>
          {worst ? <SeverityIcon severity={worst} size={13} /> : null}
        </span>
        <span className="truncate text-muted text-xs">{phaseLength(phase)}</span>
        <span className="flex flex-wrap gap-1 overflow-hidden">
          {learn.map((port) => (
            <PortChip key={port} name={port} />
          ))}
          {learn.length === 0 && phase.fill === undefined ? (
            <span className="text-2xs text-faint">learns nothing</span>
          ) : null}
          {phase.fill === undefined ? null : (
            <span className="text-2xs text-faint">fills {listText(phase.fill)}</span>
          )}
        </span>
        {overrides.map(([path, value]) => (
          <span
            key={path}
            className="flex w-full gap-1 text-2xs text-faint"
            title={`${path} = ${String(value)}`}
          >
            <span className="truncate">
              {settingName(
                path,
                overrides.map(([other]) => other),
              )}
            </span>
            <span className="max-w-1/2 shrink-0 truncate">= {String(value)}</span>
          </span>
        ))}
      </button>
      {progress === null ? null : (
        <span
          className="absolute bottom-0 left-0 h-0.5 bg-accent"
          style={{ width: `${progress * 100}%` }}
        />
      )}
      {isReadonly ? null : <PhaseTools name={name} at={at} isLast={isLast} />}
    </article>
  );
}

/** A teaching port that a phase learns from. */
function PortChip({ name }: { name: string }) {
  const catalog = useCatalog();
  const type = useDocument((state) => inputPort(catalog, state.document, portRef(name))?.type);
  const portType = catalog.port_types[type ?? ""];
  return (
    <span
      className="inline-flex h-5 max-w-full items-center gap-1 rounded-full border border-line bg-surface px-1.5 text-2xs"
      title={`Learns from ${name}`}
    >
      <PortMark
        shape={portType?.shape ?? "circle"}
        color={portType?.color ?? ""}
        isHandle={false}
        size={9}
      />
      <span className="truncate">{name}</span>
    </span>
  );
}
