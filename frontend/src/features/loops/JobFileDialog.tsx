import { type FormEvent, useId, useState } from "react";
import { errorMessage } from "@/api/client";
import { writeJobFile } from "@/api/routes";
import type { components } from "@/api/schema.gen";
import { download } from "@/lib/download";
import { showDialog, useDialogs } from "@/state/dialogs";
import { Button } from "@/ui/Button";
import { WIDE_CONTROL } from "@/ui/control";
import { Dialog } from "@/ui/Dialog";
import { RadioCards } from "@/ui/RadioCards";
import { RichText } from "@/ui/RichText";
import { useLoopText } from "./useExport";

type Target = components["schemas"]["JobInput"]["target"];
type Option = "time" | "partition" | "image" | "volume" | "nodes";

const TARGETS: readonly { value: Target; title: string; help: string }[] = [
  { value: "slurm", title: "Slurm", help: "A batch script for sbatch" },
  { value: "kuberay", title: "Kubernetes", help: "A RayJob for KubeRay, with the loop" },
  { value: "sky", title: "SkyPilot", help: "A task for sky jobs launch" },
];

const LABELS: Record<Option, { label: string; placeholder: string }> = {
  time: { label: "Walltime", placeholder: "1-00:00:00" },
  partition: { label: "Partition", placeholder: "the default" },
  image: { label: "Image with Ray and coloop", placeholder: "registry/coloop:tag" },
  volume: { label: "Bucket of the run folders", placeholder: "s3://runs" },
  nodes: { label: "Machines", placeholder: "as the hardware of the loop" },
};

const CLAIM = { label: "Volume claim of the run folders", placeholder: "named like the loop" };

const ASKED: Partial<Record<Target, { needed: Option[]; more: Option[] }>> = {
  slurm: { needed: ["time"], more: ["partition", "nodes"] },
  kuberay: { needed: ["image"], more: ["time", "volume", "nodes"] },
  sky: { needed: [], more: ["volume", "nodes"] },
};

const START: Record<Option, string> = {
  time: "12:00:00",
  partition: "",
  image: "",
  volume: "",
  nodes: "",
};

/** Exports the file that runs the loop on a cluster. */
export function JobFileDialog() {
  const isOpen = useDialogs((state) => state.open === "jobFile");
  const formId = useId();
  const [isBusy, setBusy] = useState(false);
  return (
    <Dialog
      title="Export for a cluster"
      description="A file that starts Ray on the machines of a job and runs the loop there. Secrets are passed on by name."
      isOpen={isOpen}
      onClose={() => showDialog(null)}
      footer={
        <>
          <Button onClick={() => showDialog(null)}>Cancel</Button>
          <Button type="submit" form={formId} look="primary" disabled={isBusy}>
            Export
          </Button>
        </>
      }
    >
      {isOpen ? <JobForm id={formId} onBusy={setBusy} /> : null}
    </Dialog>
  );
}

function JobForm({ id, onBusy }: { id: string; onBusy: (isBusy: boolean) => void }) {
  const text = useLoopText();
  const [target, setTarget] = useState<Target>("slurm");
  const [values, setValues] = useState(START);
  const [problem, setProblem] = useState<string | null>(null);
  const { needed, more } = ASKED[target] ?? { needed: [], more: [] };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    onBusy(true);
    try {
      const { nodes, ...texts } = values;
      const given = Object.entries(texts).map(([key, value]) => [
        key,
        [...needed, ...more].includes(key as Option) ? value.trim() || null : null,
      ]);
      const file = await writeJobFile({
        yaml: await text(),
        target,
        nodes: nodes === "" ? null : Number(nodes),
        ...Object.fromEntries(given),
      });
      download(file.name, file.text);
      showDialog(null);
    } catch (error) {
      setProblem(errorMessage(error));
    } finally {
      onBusy(false);
    }
  };
  return (
    <form id={id} onSubmit={(event) => void submit(event)} className="flex flex-col gap-4">
      <RadioCards legend="Cluster" value={target} options={TARGETS} onChange={setTarget} />
      <div className="grid grid-cols-2 gap-3 max-sm:grid-cols-1">
        {[...needed, ...more].map((option) => (
          <OptionField
            key={`${target}.${option}`}
            option={option}
            words={option === "volume" && target === "kuberay" ? CLAIM : LABELS[option]}
            value={values[option]}
            isNeeded={needed.includes(option)}
            onChange={(value) => setValues((before) => ({ ...before, [option]: value }))}
          />
        ))}
      </div>
      {problem === null ? null : (
        <p role="alert" className="rounded-2 bg-error-soft px-3 py-2 text-sm">
          <RichText text={problem} />
        </p>
      )}
    </form>
  );
}

interface OptionFieldProps {
  option: Option;
  words: { label: string; placeholder: string };
  value: string;
  isNeeded: boolean;
  onChange: (value: string) => void;
}

function OptionField({ option, words, value, isNeeded, onChange }: OptionFieldProps) {
  const id = useId();
  const { label, placeholder } = words;
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="text-muted text-sm">
        {label}
      </label>
      <input
        id={id}
        className={WIDE_CONTROL}
        type={option === "nodes" ? "number" : "text"}
        min={option === "nodes" ? 1 : undefined}
        value={value}
        required={isNeeded}
        placeholder={placeholder}
        autoComplete="off"
        onChange={(event) => onChange(event.target.value)}
      />
    </div>
  );
}
