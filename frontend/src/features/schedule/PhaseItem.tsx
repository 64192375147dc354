import { ChevronLeft, ChevronRight, type LucideIcon, Plus, Repeat, Ungroup, X } from "lucide-react";
import type { JsonObject } from "@/api/types";
import { inputPort } from "@/document/canConnect";
import { portRef } from "@/document/edges";
import { isGroup, type PhasePath, phaseAt, phaseList, phaseSpecPath } from "@/document/phases";
import { indexProblems, problemsAt, toneOf } from "@/document/problems";
import type { LoopDocument } from "@/document/types";
import { isObject, joinPath } from "@/lib/paths";
import { useLive } from "@/live/hooks";
import { setValue } from "@/state/commands/fields";
import {
  groupPhase,
  mergePhases,
  movePhase,
  removePhase,
  ungroupPhases,
} from "@/state/commands/phases";
import { useCatalog, useDocument, useOpenLoop, useSync } from "@/state/document/context";
import { clearSelection, select, useSelection } from "@/state/selection";
import { classes } from "@/ui/classes";
import { IconButton } from "@/ui/IconButton";
import { PortMark } from "@/ui/PortMark";
import { SeverityIcon } from "@/ui/SeverityIcon";
import { insertPhase } from "./newPhase";
import { listText, phaseLength, settingName } from "./phaseText";

/** As many ports and changed settings as there is room for on a card. */
const MOST_CHIPS = 3;
const MOST_SET = 4;

export const PHASE_CARD =
  "relative flex min-h-19 w-46 flex-none flex-col overflow-hidden rounded-2 border bg-surface";

interface PhaseItemProps {
  phase: JsonObject;
  at: PhasePath;
  isLast: boolean;
}

export function PhaseItem(props: PhaseItemProps) {
  return isGroup(props.phase) ? <PhaseGroup {...props} /> : <PhaseCard {...props} />;
}

function PhaseGroup({ phase, at }: PhaseItemProps) {
  const open = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const chosen = useSelection((state) => state.phase);
  const isChosen = chosen?.join() === at.join();
  const phases = Array.isArray(phase.phases) ? phase.phases.filter(isObject) : [];

  const add = () => {
    const place = [...at, phases.length];
    insertPhase(open, place);
    select({ phase: place });
  };
  return (
    <section
      aria-label={`Group, ${String(phase.repeat ?? 1)} times`}
      className={classes(
        "flex flex-none flex-col rounded-2 border border-dashed bg-sunken",
        isChosen ? "border-accent" : "border-line-strong",
      )}
    >
      <header className="flex h-7 items-center gap-1 px-1">
        <button
          type="button"
          className="flex min-w-0 items-center gap-1 rounded-1 px-1 text-xs hover:bg-hover"
          aria-pressed={isChosen}
          onClick={() => select({ phase: at })}
        >
          <Repeat size={12} className="text-accent-text" aria-hidden="true" />
          <b className="tabular">× {String(phase.repeat ?? 1)}</b>
          {phase.name ? <span className="truncate text-muted">{String(phase.name)}</span> : null}
        </button>
        <span className="flex-1" />
        {isReadonly ? null : (
          <>
            <IconButton
              label="Add a phase to the group"
              size="tiny"
              onClick={add}
              icon={<Plus size={13} />}
            />
            <IconButton
              label="Ungroup the phases"
              size="tiny"
              onClick={() => {
                open.store.dispatch(ungroupPhases, { at });
                clearSelection();
              }}
              icon={<Ungroup size={13} />}
            />
          </>
        )}
      </header>
      <div className="flex min-h-0 flex-1 items-stretch gap-1 px-1 pb-1">
        {phases.map((child, index) => (
          <PhaseItem
            key={index}
            phase={child}
            at={[...at, index]}
            isLast={index === phases.length - 1}
          />
        ))}
      </div>
    </section>
  );
}

function usePhaseProgress(name: string | null): number | null {
  return useLive(
    "gauges",
    (live) => {
      const gauges = live.state.gauges;
      if (name === null || gauges?.phase !== name || live.connection === "ended") return null;
      const { phase_step: step, phase_steps: steps } = gauges;
      return typeof step === "number" && typeof steps === "number" && steps > 0
        ? Math.round(Math.min(1, step / steps) * 100) / 100
        : null;
    },
    null,
  );
}

function PhaseCard({ phase, at, isLast }: PhaseItemProps) {
  const progress = usePhaseProgress(typeof phase.name === "string" ? phase.name : null);
  const isReadonly = useDocument((state) => state.isReadonly);
  const chosen = useSelection((state) => state.phase);
  const isChosen = chosen?.join() === at.join();
  const problems = useSync((state) => indexProblems(state.check?.report.diagnostics).loop);
  const worst = toneOf(useCatalog(), problemsAt(problems, joinPath(phaseSpecPath(at)), false));
  const learn = Array.isArray(phase.learn) ? phase.learn.map(String) : [];
  const [shown, more] = split(learn, MOST_CHIPS);
  const overrides = isObject(phase.set) ? Object.entries(phase.set) : [];
  const [set, moreSet] = split(overrides, MOST_SET);
  const index = at.at(-1) ?? 0;
  const name = String(phase.name ?? `phase ${index + 1}`);

  return (
    <article
      className={classes(
        PHASE_CARD,
        "group/phase",
        isChosen ? "border-accent ring-1 ring-accent" : "border-line hover:border-line-strong",
      )}
    >
      <button
        type="button"
        className="flex min-h-0 w-full flex-1 flex-col gap-1 p-2 text-left"
        aria-pressed={isChosen}
        onClick={() => select({ phase: at })}
      >
        <span className="flex w-full shrink-0 items-center gap-1">
          <span className="min-w-0 flex-1 truncate font-semibold text-xs" title={name}>
            {name}
          </span>
          {worst ? <SeverityIcon severity={worst} size={13} /> : null}
        </span>
        <span className="shrink-0 truncate text-muted text-xs">{phaseLength(phase)}</span>
        <span className="flex shrink-0 flex-wrap gap-1">
          {shown.map((port) => (
            <PortChip key={port} name={port} />
          ))}
          {more.length > 0 ? <More of={more} /> : null}
          {learn.length === 0 && phase.fill === undefined ? (
            <span className="text-2xs text-faint">learns nothing</span>
          ) : null}
          {phase.fill === undefined ? null : (
            <span className="text-2xs text-faint">fills {listText(phase.fill)}</span>
          )}
        </span>
        {set.map(([path, value]) => (
          <span
            key={path}
            className="flex w-full shrink-0 gap-1 text-2xs text-faint"
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
        {moreSet.length > 0 ? (
          <More of={moreSet.map(([path, value]) => `${path} = ${String(value)}`)} />
        ) : null}
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

/** What is shown, and what is only counted: one more line than there is room for would be cut. */
function split<T>(all: readonly T[], most: number): [readonly T[], readonly T[]] {
  const count = all.length > most ? most - 1 : all.length;
  return [all.slice(0, count), all.slice(count)];
}

function More({ of }: { of: readonly string[] }) {
  return (
    <span className="h-5 shrink-0 text-2xs text-muted leading-5" title={of.join(", ")}>
      and {of.length} more
    </span>
  );
}

function PortChip({ name }: { name: string }) {
  const catalog = useCatalog();
  const type = useDocument((state) => inputPort(catalog, state.document, portRef(name))?.type);
  const portType = catalog.port_types[type ?? ""];
  return (
    <span
      className="inline-flex h-5 max-w-full items-center gap-1 rounded-full border border-line bg-surface px-1.5 text-2xs"
      title={`Learns from ${name}`}
    >
      <PortMark type={portType} size={9} />
      <span className="truncate">{name}</span>
    </span>
  );
}

function PhaseTools({ name, at, isLast }: { name: string; at: PhasePath; isLast: boolean }) {
  const { store } = useOpenLoop();
  const move = useMovePhase(at);
  const isTop = at.length === 1;
  const repeat = () => {
    store.dispatch(groupPhase, { at, repeat: 2 });
    select({ phase: at });
  };
  const remove = () => {
    store.dispatch(removePhase, { at });
    clearSelection();
  };
  const tool = (label: string, Icon: LucideIcon, onClick: () => void, disabled = false) => (
    <IconButton
      label={label}
      size="tiny"
      disabled={disabled}
      onClick={onClick}
      icon={<Icon size={13} />}
    />
  );
  return (
    <span className="absolute right-1 bottom-1 flex rounded-1 border border-line bg-raised p-px opacity-0 transition-opacity duration-100 group-focus-within/phase:opacity-100 group-hover/phase:opacity-100">
      {tool(`Move ${name} left`, ChevronLeft, () => move(-1), isTop && at[0] === 0)}
      {tool(`Move ${name} right`, ChevronRight, () => move(1), isTop && isLast)}
      {isTop ? tool(`Repeat ${name}`, Repeat, repeat) : null}
      {tool(`Remove ${name}`, X, remove)}
    </span>
  );
}

/**
 * Moves a phase one place to the left or right, as it is seen: into a group that stands there, through it, and
 * out of it on the other side. The phase stays selected.
 */
function useMovePhase(at: PhasePath): (by: -1 | 1) => void {
  const { store } = useOpenLoop();
  return (by) => {
    const { document } = store.getState();
    const parent = at.slice(0, -1);
    const target = [...parent, (at.at(-1) ?? 0) + by];
    const next = phaseAt(document, target);
    if (next !== null && at.length === 1 && isGroup(next)) {
      store.dispatch(mergePhases, { at, side: by });
      const inside = by === 1 ? 0 : (phaseList(document, target)?.length ?? 0);
      select({ phase: [...(by === 1 ? at : target), inside] });
    } else if (next !== null) {
      store.dispatch(movePhase, { at, by });
      select({ phase: target });
    } else {
      const left = leaveGroup(document, at, by);
      if (!left) return;
      const path = [...phaseSpecPath(left.outside), "phases"];
      store.dispatch(setValue, { path, value: left.phases }, { label: "Move out of group" });
      select({ phase: left.at });
    }
  };
}

export function leaveGroup(document: LoopDocument, at: PhasePath, by: -1 | 1) {
  const inside = at.slice(0, -1);
  const outside = inside.slice(0, -1);
  const group = phaseAt(document, inside);
  const phase = phaseAt(document, at);
  const list = phaseList(document, outside);
  const index = inside.at(-1);
  if (!group || !phase || !list || index === undefined) return null;
  const rest = (phaseList(document, inside) ?? []).filter((one) => one !== phase);
  const left = rest.length === 0 ? [] : [{ ...group, phases: rest }];
  const placed = by === -1 ? [phase, ...left] : [...left, phase];
  return {
    outside,
    phases: list.toSpliced(index, 1, ...placed),
    at: [...outside, index + placed.indexOf(phase)],
  };
}
