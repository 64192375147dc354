import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { fetchRuns } from "@/api/routes";
import type { Json, RowsFrom, RunSummary } from "@/api/types";
import { datasetsOf } from "@/document/datasets";
import type { Payee } from "@/document/rewards";
import { isObject } from "@/lib/paths";
import { useCatalog, useDocument, useOpenLoop } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Segmented } from "@/ui/Segmented";
import { Select } from "@/ui/Select";

type Way = RowsFrom["type"];

const WAYS: readonly { value: Way; label: string; title: string }[] = [
  { value: "of_run", label: "Run", title: "Rows that a run recorded" },
  {
    value: "of_dataset",
    label: "Dataset",
    title: "Rows of the dataset, with the right answer as completion",
  },
  { value: "pasted", label: "Pasted", title: "Rows of your own" },
  { value: "rolled_out", label: "Roll out now", title: "Rows that the model generates now" },
];
const COUNT = 64;
const FEW = 16;
const MAX_RUNS = 50;

interface RowsChoiceProps {
  payee: Payee;
  onChange: (rows: RowsFrom | string) => void;
}

export function RowsChoice({ payee, onChange }: RowsChoiceProps) {
  const catalog = useCatalog();
  const document = useDocument((state) => state.document);
  const { all: runs, hasOwn } = useRuns();
  const [chosenWay, setWay] = useState<Way | null>(null);
  const [run, setRun] = useState<string | null>(null);
  const [weights, setWeights] = useState("");
  const [dataset, setDataset] = useState<string | null>(null);
  const [pasted, setPasted] = useState("");
  const datasets = useMemo(
    () => datasetsOf(catalog, document, payee.node),
    [catalog, document, payee.node],
  );
  const way = chosenWay ?? (hasOwn ? "of_run" : datasets.length > 0 ? "of_dataset" : "pasted");
  const chosenRun = run ?? runs[0]?.id ?? null;
  const chosenDataset = dataset !== null && datasets.includes(dataset) ? dataset : datasets[0];

  const rows = useMemo<RowsFrom | string>(() => {
    switch (way) {
      case "of_run":
        return chosenRun === null
          ? "There is no run yet: start one, or use rows of a dataset."
          : { type: way, run: chosenRun, step: null, count: COUNT };
      case "of_dataset":
        return chosenDataset === undefined
          ? "No dataset is connected to this learner."
          : { type: way, node: chosenDataset, offset: 0, count: COUNT, completion: null };
      case "pasted": {
        const read = readPasted(pasted);
        return "problem" in read ? read.problem : { type: way, rows: read.rows };
      }
      case "rolled_out":
        return { type: way, count: FEW, run: weights === "" ? null : weights };
    }
  }, [way, chosenRun, chosenDataset, pasted, weights]);
  useEffect(() => onChange(rows), [rows, onChange]);

  return (
    <>
      <Segmented label="Rows from" value={way} options={WAYS} onChange={setWay} />
      {way === "of_run" && runs.length > 0 ? (
        <div className="w-48">
          <Select
            label="Run whose rows are scored"
            value={chosenRun ?? ""}
            options={runs.map((run) => ({ value: run.id, label: shortId(run), help: run.name }))}
            onChange={setRun}
          />
        </div>
      ) : null}
      {way === "of_dataset" && datasets.length > 1 ? (
        <div className="w-40">
          <Select
            label="Dataset whose rows are scored"
            value={chosenDataset ?? ""}
            options={datasets.map((name) => ({ value: name, label: name }))}
            onChange={setDataset}
          />
        </div>
      ) : null}
      {way === "pasted" ? <Pasting text={pasted} onChange={setPasted} /> : null}
      {way === "rolled_out" && runs.length > 0 ? (
        <div className="w-48">
          <Select
            label="Weights that generate"
            value={weights}
            options={[
              { value: "", label: "at the start of the loop" },
              ...runs.map((run) => ({
                value: run.id,
                label: `after ${shortId(run)}`,
                help: run.name,
              })),
            ]}
            onChange={setWeights}
          />
        </div>
      ) : null}
    </>
  );
}

function shortId({ id, name }: RunSummary): string {
  return id.startsWith(`${name}-`) ? id.slice(name.length + 1) : id;
}

function useRuns() {
  const { loopId } = useOpenLoop();
  const { data } = useQuery({
    queryKey: ["runs", "", 0, MAX_RUNS],
    queryFn: () => fetchRuns({ limit: MAX_RUNS, offset: 0, search: "" }),
  });
  return useMemo(() => {
    const all = data?.items ?? [];
    const own = all.filter((run) => run.loop_id === loopId);
    const others = all.filter((run) => run.loop_id !== loopId);
    return { all: [...own, ...others], hasOwn: own.length > 0 };
  }, [data, loopId]);
}

function Pasting({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const [isOpen, setOpen] = useState(false);
  const read = readPasted(text);
  const count = "rows" in read ? read.rows.length : 0;
  return (
    <>
      <Button size="small" onClick={() => setOpen(true)}>
        {count === 0 ? "Paste rows…" : `Change the ${count} rows…`}
      </Button>
      <Dialog
        title="Rows to score"
        description="A JSON list, one JSON object per line, or one completion per line. A reward reads further columns by name; rows of one group are compared with each other."
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        width="max-w-2xl"
        footer={
          <>
            <span className="flex-1 text-muted text-xs" role="status">
              {"problem" in read ? read.problem : `${count} rows`}
            </span>
            <Button onClick={() => onChange(text + EXAMPLE)}>Add an example</Button>
            <Button look="primary" onClick={() => setOpen(false)}>
              Done
            </Button>
          </>
        }
      >
        <textarea
          aria-label="Rows to score"
          className="h-72 w-full rounded-2 border border-line bg-surface p-2 font-mono text-xs focus:border-focus focus:outline-2 focus:outline-focus/40"
          placeholder={EXAMPLE}
          value={text}
          onChange={(event) => onChange(event.target.value)}
        />
      </Dialog>
    </>
  );
}

/** Rows as a person pastes them: JSON, JSON a line, or a completion a line. Pure. */
const MAX_ROWS = 256;

type Pasted = { rows: Record<string, Json>[] } | { problem: string };

export function readPasted(text: string): Pasted {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (lines.length === 0) return { problem: "Paste at least one row." };
  const whole = parse(text);
  const items = Array.isArray(whole)
    ? whole
    : isObject(whole)
      ? [whole]
      : lines.map((line) => parse(line) ?? line);
  if (items.length > MAX_ROWS) {
    return { problem: `${items.length} rows were pasted, at most ${MAX_ROWS} are scored.` };
  }
  return { rows: items.map(asRow) };
}

function asRow(item: Json): Record<string, Json> {
  if (!isObject(item))
    return { completion: typeof item === "string" ? item : JSON.stringify(item) };
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, value ?? null]));
}

function parse(text: string): Json | undefined {
  try {
    const value: Json = JSON.parse(text);
    return typeof value === "object" ? value : undefined;
  } catch {
    return undefined;
  }
}

const EXAMPLE = '{"prompt": "1+1=", "completion": "2", "answer": "2"}\n';
