import { useQueryClient } from "@tanstack/react-query";
import { FlaskConical, Plus, X } from "lucide-react";
import { useEffect, useId, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { errorMessage } from "@/api/client";
import { startSweep } from "@/api/routes";
import { formatPlural } from "@/lib/format";
import { leaveField } from "@/state/choosing";
import { showDialog, useDialogs, useTried } from "@/state/dialogs";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { CONTROL } from "@/ui/control";
import { Dialog } from "@/ui/Dialog";
import { IconButton } from "@/ui/IconButton";
import { settingsIn, type WrittenSetting } from "../start/settingsIn";
import { withTrust } from "../start/TrustDialog";
import { around, countRuns, type TriedField, triedOf } from "./tried";

const MOST_SEEDS = 20;

/** Values of settings, and seeds: every combination becomes a run of the queue. */
export function TryValuesDialog() {
  const isOpen = useDialogs((state) => state.open === "tryValues");
  const path = useTried((state) => state.path);
  const written = useWritten();
  const [fields, setFields] = useState<readonly TriedField[]>([]);
  const [seeds, setSeeds] = useState("1");
  const { isBusy, problem, start, forget } = useStart();
  useEffect(() => {
    if (isOpen) setFields([{ path: path ?? "", text: "" }]);
  }, [isOpen, path]);
  const count = Number(seeds);
  const isCount = Number.isInteger(count) && count >= 1 && count <= MOST_SEEDS;
  const runs = isCount ? countRuns(fields, count) : 0;
  const change = (place: number, given: Partial<TriedField>) => {
    forget();
    setFields(fields.map((one, at) => (at === place ? { ...one, ...given } : one)));
  };
  return (
    <Dialog
      title="Try values"
      description="Every combination of the values is one run. They wait in the queue, and are compared on one page."
      isOpen={isOpen}
      onClose={() => showDialog(null)}
      width="max-w-2xl"
      footer={
        <>
          <Button onClick={() => showDialog(null)}>Cancel</Button>
          <Button
            look="primary"
            icon={<FlaskConical size={14} />}
            disabled={isBusy || runs === 0}
            onClick={() => void start(fields, count)}
          >
            {isBusy ? "Queueing" : `Queue ${formatPlural(runs, "run")}`}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-3 text-sm">
        {fields.map((field, place) => (
          <FieldValues
            key={place}
            number={place + 1}
            field={field}
            written={written}
            onChange={(given) => change(place, given)}
            onRemove={
              fields.length > 1 ? () => setFields(fields.filter((_, at) => at !== place)) : null
            }
          />
        ))}
        <Button
          size="small"
          icon={<Plus size={12} />}
          className="self-start"
          onClick={() => setFields([...fields, { path: "", text: "" }])}
        >
          Another setting
        </Button>
        <label className="flex items-center gap-3">
          <span className="w-24 text-muted">Seeds of each</span>
          <input
            inputMode="numeric"
            className={`${CONTROL} tabular w-20`}
            value={seeds}
            aria-invalid={!isCount || undefined}
            onChange={(event) => setSeeds(event.target.value)}
          />
          {isCount ? null : <span className="text-error text-xs">1 to {MOST_SEEDS}</span>}
        </label>
        {problem === null ? null : (
          <p role="alert" className="wrap-anywhere rounded-2 bg-error-soft px-3 py-1.5 text-error">
            {problem}
          </p>
        )}
      </div>
    </Dialog>
  );
}

interface FieldValuesProps {
  number: number;
  field: TriedField;
  written: readonly WrittenSetting[];
  onChange: (given: Partial<TriedField>) => void;
  onRemove: (() => void) | null;
}

function FieldValues({ number, field, written, onChange, onRemove }: FieldValuesProps) {
  const [pathId, valuesId, listId] = [useId(), useId(), useId()];
  const value = written.find(({ path }) => path === field.path.trim())?.value;
  const near = around(value);
  return (
    <fieldset className="grid grid-cols-[6rem_minmax(0,1fr)_auto] items-center gap-x-3 gap-y-1.5">
      <legend className="sr-only">Setting {number}</legend>
      <label htmlFor={pathId} className="text-muted">
        Setting
      </label>
      <input
        id={pathId}
        list={listId}
        className={`${CONTROL} w-full font-mono text-xs`}
        value={field.path}
        placeholder="nodes.actor.training.optimizer.lr"
        onChange={(event) => onChange({ path: event.target.value })}
      />
      {onRemove ? (
        <IconButton
          label={`Leave setting ${number} out`}
          size="small"
          icon={<X size={14} />}
          onClick={onRemove}
        />
      ) : (
        <span />
      )}
      <datalist id={listId}>
        {written.map(({ path }) => (
          <option key={path} value={path} />
        ))}
      </datalist>
      <label htmlFor={valuesId} className="text-muted">
        Values
      </label>
      <input
        id={valuesId}
        className={`${CONTROL} tabular w-full`}
        value={field.text}
        placeholder={value === undefined ? "1e-5, 3e-5" : `now ${String(value)}`}
        onChange={(event) => onChange({ text: event.target.value })}
      />
      {near ? (
        <Button size="small" title={`Try ${near}`} onClick={() => onChange({ text: near })}>
          Around it
        </Button>
      ) : (
        <span />
      )}
    </fieldset>
  );
}

function useWritten(): WrittenSetting[] {
  const nodes = useDocument((state) => state.document.nodes);
  const rest = useDocument((state) => state.document.rest);
  return useMemo(() => settingsIn({ ...rest, nodes }), [nodes, rest]);
}

function useStart() {
  const { loopId, sync } = useOpenLoop();
  const [, navigate] = useLocation();
  const client = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const start = async (fields: readonly TriedField[], seeds: number) => {
    setBusy(true);
    setProblem(null);
    leaveField();
    try {
      await sync?.keep();
      const present = sync?.present() ?? null;
      if (present === null) {
        setProblem("The loop on the screen has not been checked yet. Try again.");
        return;
      }
      const asked = {
        yaml: present.yaml,
        tried: triedOf(fields),
        seeds,
        tags: [],
        force: false,
        in_one_process: false,
        ...(loopId ? { loop_id: loopId } : {}),
      };
      const made = await withTrust((trust) => startSweep({ ...asked, trust }));
      if (made === null) return;
      showDialog(null);
      await client.invalidateQueries({ queryKey: ["runs"] });
      navigate(`/sweeps/${encodeURIComponent(made.sweep)}`);
    } catch (error) {
      setProblem(errorMessage(error));
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, problem, start, forget: () => setProblem(null) };
}
