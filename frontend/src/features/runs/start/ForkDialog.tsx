import { useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useId, useState } from "react";
import { useLocation } from "wouter";
import { fetchCheckpoints, fetchLoop, fetchRunSpec, forkRun } from "@/api/routes";
import type { Json, JsonObject, RunSummary } from "@/api/types";
import { isObject, joinPath, type Path, readPath } from "@/lib/paths";
import { useAttempt } from "@/state/useAttempt";
import { Button } from "@/ui/Button";
import { CONTROL } from "@/ui/control";
import { Dialog } from "@/ui/Dialog";
import { Select } from "@/ui/Select";
import { Unanswered } from "@/ui/States";
import { LoopChoice, useValueChanges, ValueChanges, type Values } from "./ForkChanges";
import { settingsIn } from "./settingsIn";
import { withTrust } from "./TrustDialog";

interface ForkDialogProps {
  run: Pick<RunSummary, "id" | "name" | "loop_id">;
  isOpen: boolean;
  onClose: () => void;
  at?: number;
  best?: number | undefined;
  changes?: Values;
  reason?: string;
}

const NO_VALUES: Values = {};
const WHAT =
  "A new run starts from the weights, optimizer state and schedule position of a checkpoint. This run stays as it is.";

export function ForkDialog(props: ForkDialogProps) {
  const { run, isOpen, onClose, at, best, changes, reason } = props;
  const kept = useQuery({
    queryKey: ["run", run.id, "checkpoints"],
    queryFn: () => fetchCheckpoints(run.id),
    enabled: isOpen,
    staleTime: 0,
  });
  const [chosen, setChosen] = useState<string | null>(null);
  const [isAsNow, setAsNow] = useState(false);
  const { isBusy, attempt } = useAttempt();
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState<Record<string, string>>({});
  const steps = offered(kept.data?.steps ?? [], at);
  const newest = Math.max(...steps);
  const [wanted] = steps;
  const values = changes ?? (isAsNow ? {} : valuesOf(typed));
  const isInvalid = useValueChanges(run.id, isOpen ? values : NO_VALUES).isError;
  const isSame = !isAsNow && Object.keys(values).length === 0;
  const step = chosen ?? (wanted === undefined ? "" : String(wanted));
  const why = at === undefined || chosen !== null ? null : whyCheckpoint(steps, at);
  const fork = () =>
    attempt(async () => {
      const loop = isAsNow && run.loop_id ? { yaml: (await fetchLoop(run.loop_id)).yaml } : {};
      const name = `${run.name} from ${step}`;
      const asked = { step: Number(step), set: { ...values }, name, force: false, ...loop };
      const made = await withTrust((trust) => forkRun(run.id, { ...asked, trust }));
      onClose();
      if (made) navigate(`/runs/${made.id}`);
    }, "The run was not forked.");
  return (
    <Dialog
      title="Fork this run"
      description={reason ?? WHAT}
      isOpen={isOpen}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {steps.length > 0 ? (
            <Button look="primary" disabled={isBusy || isInvalid} onClick={() => void fork()}>
              {isBusy ? "Starting" : `Fork from step ${step}`}
            </Button>
          ) : null}
        </>
      }
    >
      {!kept.data ? (
        <Unanswered
          query={kept}
          loading="Looking for checkpoints"
          rows={2}
          failed="The checkpoints could not be loaded"
        />
      ) : steps.length === 0 ? (
        <p className="text-sm">
          There is no checkpoint yet. A run writes them at the interval set in its loop, and when it
          is stopped.
        </p>
      ) : (
        <div className="flex flex-col gap-3 text-sm">
          <div className="flex items-center gap-3">
            <span className="w-24 text-muted">Checkpoint</span>
            <Select
              label="Checkpoint"
              value={step}
              className="w-60"
              options={steps.map((one) => ({
                value: String(one),
                label: named(one, newest, at, best),
              }))}
              onChange={setChosen}
            />
          </div>
          {why ? <p className="rounded-2 bg-warning-soft px-3 py-1.5 text-warning">{why}</p> : null}
          {changes === undefined && !isAsNow ? (
            <ForkFields run={run.id} typed={typed} onTyped={setTyped} />
          ) : null}
          {changes || !(isSame || isAsNow) ? (
            <ValueChanges id={run.id} values={values} />
          ) : (
            <LoopChoice run={run} isAsNow={isAsNow} onAsNow={setAsNow} />
          )}
          {isSame ? (
            <p role="note" className="text-muted">
              Unchanged, this fork repeats its parent: the same seed gives the same numbers.
            </p>
          ) : null}
        </div>
      )}
    </Dialog>
  );
}

function named(
  step: number,
  newest: number,
  at: number | undefined,
  best: number | undefined,
): string {
  const more = step === best ? " (best so far)" : step === newest ? " (newest)" : "";
  const side = at !== undefined && step > at ? `, after step ${at}` : "";
  return `step ${step}${side}${more}`;
}

interface ForkFieldsProps {
  run: string;
  typed: Readonly<Record<string, string>>;
  onTyped: (typed: Record<string, string>) => void;
}

function ForkFields({ run, typed, onTyped }: ForkFieldsProps) {
  const { data } = useQuery({
    queryKey: ["run", run, "spec", "written"],
    queryFn: () => fetchRunSpec(run),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const [path, setPath] = useState("");
  const listId = useId();
  const usual = data?.spec ? changeables(data.spec) : [];
  const others = Object.keys(typed).filter((one) => !usual.some((field) => field.path === one));
  const fields = [
    ...usual.map(({ path, label, value }) => ({ path, label, asIs: String(value) })),
    ...others.map((path) => ({ path, label: path, asIs: textAt(data?.spec, path) })),
  ];
  const add = () => {
    const wanted = path.trim();
    if (wanted === "" || wanted in typed) return;
    onTyped({ ...typed, [wanted]: "" });
    setPath("");
  };
  return (
    <fieldset className="flex flex-col gap-1.5">
      <legend className="mb-1 font-medium">What to change</legend>
      {fields.map(({ path, label, asIs }) => (
        <label key={path} className="flex items-center gap-3">
          <span className="w-60 truncate text-muted" title={path}>
            {label}
          </span>
          <input
            className={`${CONTROL} tabular w-40`}
            value={typed[path] ?? ""}
            placeholder={asIs}
            onChange={(event) => onTyped({ ...typed, [path]: event.target.value })}
          />
        </label>
      ))}
      <div className="flex items-center gap-3">
        <input
          aria-label="Another field, by its path"
          className={`${CONTROL} w-60 font-mono text-xs`}
          value={path}
          placeholder="nodes.actor.rollout.temperature"
          list={listId}
          onChange={(event) => setPath(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && add()}
        />
        <datalist id={listId}>
          {settingsIn(data?.spec ?? {}).map(({ path }) => (
            <option key={path} value={path} />
          ))}
        </datalist>
        <Button size="small" icon={<Plus size={12} />} onClick={add}>
          Add field
        </Button>
      </div>
    </fieldset>
  );
}

function textAt(spec: JsonObject | null | undefined, path: string): string {
  const value = settingsIn(spec ?? {}).find((one) => one.path === path)?.value;
  return value === undefined ? "" : String(value);
}

function valuesOf(typed: Readonly<Record<string, string>>): Values {
  const filled = Object.entries(typed).filter(([, text]) => text.trim() !== "");
  return Object.fromEntries(filled.map(([path, text]) => [path, readTyped(text)]));
}

/** The newest checkpoint at or before a step; null where there is none. */
export function checkpointBefore(steps: readonly number[], at: number): number | null {
  const before = steps.filter((step) => step <= at);
  return before.length > 0 ? Math.max(...before) : null;
}

/** Which checkpoint is taken for a step, and why it is not that step itself; null: nothing to say. */
export function whyCheckpoint(steps: readonly number[], at: number): string | null {
  if (steps.length === 0 || steps.includes(at)) return null;
  const before = checkpointBefore(steps, at);
  return before === null
    ? `No checkpoint of step ${at} or before it is kept. The earliest is of step ${Math.min(...steps)}: the new run would start after the step that is shown.`
    : `Step ${before} is the nearest checkpoint at or before step ${at}: the new run starts there.`;
}

/** Checkpoints as they are offered for a step: those at or before it first, the nearest first. */
export function offered(steps: readonly number[], at: number | undefined): number[] {
  const newest = steps.toSorted((one, other) => other - one);
  if (at === undefined) return newest;
  const later = newest.filter((step) => step > at).toReversed();
  return [...newest.filter((step) => step <= at), ...later];
}

export interface Changeable {
  path: string;
  label: string;
  value: Json | undefined;
}

export function changeables(spec: JsonObject): Changeable[] {
  const fields: Changeable[] = [
    { path: "run.seed", label: "Seed", value: readPath(spec, ["run", "seed"]) ?? 0 },
  ];
  const add = (path: Path, label: string) => {
    const value = readPath(spec, path);
    if (typeof value === "number") fields.push({ path: joinPath(path), label, value });
  };
  add(["schedule", "steps"], "Steps");
  const phases = readPath(spec, ["schedule", "phases"]);
  if (Array.isArray(phases)) {
    for (const [index, phase] of phases.entries()) {
      const name = isObject(phase) && typeof phase.name === "string" ? phase.name : `${index + 1}`;
      add(["schedule", "phases", index, "steps"], `Steps of ${name}`);
    }
  }
  for (const name of Object.keys(isObject(spec.nodes) ? spec.nodes : {})) {
    add(["nodes", name, "training", "optimizer", "lr"], `Learning rate of ${name}`);
  }
  return fields;
}

export function readTyped(text: string): Json {
  const trimmed = text.trim();
  try {
    return JSON.parse(trimmed) as Json;
  } catch {
    const number = Number(trimmed);
    return trimmed !== "" && Number.isFinite(number) ? number : trimmed;
  }
}
