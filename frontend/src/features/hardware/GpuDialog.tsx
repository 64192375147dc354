import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useId, useState } from "react";
import { fetchHardware } from "@/api/routes";
import type { HardwareEntry } from "@/api/types";
import { hardwareName } from "@/document/pools";
import { describeHardware } from "@/state/commands/fields";
import { showGpuForm, useHardwareView } from "@/state/dialogs";
import { useDocument, useEditRefusal, useOpenLoop } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { WIDE_CONTROL } from "@/ui/control";
import { Dialog } from "@/ui/Dialog";
import { Segmented } from "@/ui/Segmented";
import { FIGURES, type Figure, formOf, formProblem, type GpuForm, hardwareOf } from "./gpuForm";

const LABELS: Record<Figure, { label: string; unit: string }> = {
  memory_gib: { label: "Memory that a process can use", unit: "GiB" },
  bf16_tflops: { label: "Dense bfloat16 speed", unit: "TFLOP/s" },
  bandwidth: { label: "Memory bandwidth", unit: "GB/s" },
  link: { label: "Link to another GPU", unit: "GB/s" },
};
const PCIE = 31;

const known: Record<Figure, (one: HardwareEntry) => number> = {
  memory_gib: (one) => one.usable_bytes / 2 ** 30,
  bf16_tflops: (one) => one.bf16_flops / 1e12,
  bandwidth: (one) => one.bandwidth / 1e9,
  link: (one) => one.link_bandwidth / 1e9,
};

/** Figures of a GPU of one's own, or that replace those of a preset, and what an hour of it costs. */
export function GpuDialog() {
  const isOpen = useHardwareView((state) => state.isDescribing);
  return isOpen ? <Form /> : null;
}

function Form() {
  const { store, catalog } = useOpenLoop();
  const current = useDocument((state) => hardwareName(state.document));
  const refusal = useEditRefusal();
  const [form, setForm] = useState(() => formOf(store.getState().document));
  const presets = useQuery({
    queryKey: ["presets", "hardware"],
    queryFn: fetchHardware,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const preset = presets.data?.find((one) => one.name === form.preset);
  const alike = preset ?? presets.data?.find((one) => one.gpu === form.gpu.trim());
  const isPreset = presets.data?.some((one) => one.name === current && one.gpu !== null) ?? false;
  const problem = formProblem(form, (gpu) => presets.data?.some((one) => one.gpu === gpu) ?? false);
  const change = (part: Partial<GpuForm>) => setForm((old) => ({ ...old, ...part }));
  const close = () => showGpuForm(false);
  const apply = () => {
    if (problem !== null || refusal !== null) return;
    const values = hardwareOf(form);
    const label = form.preset === null ? `Run on ${form.gpu.trim()}` : "Figures of the GPU";
    store.dispatch(describeHardware, { catalog, values }, { label });
    close();
  };
  return (
    <Dialog
      isOpen
      title="GPU and price"
      description="Memory and times are estimated with these figures. Empty fields keep what is known."
      onClose={close}
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button look="primary" refusal={refusal ?? problem} onClick={apply}>
            Apply
          </Button>
        </>
      }
    >
      <form
        className="grid grid-cols-2 gap-x-4 gap-y-3"
        onSubmit={(event) => {
          event.preventDefault();
          apply();
        }}
      >
        {isPreset ? (
          <div className="col-span-2">
            <Segmented
              label="Which GPU"
              value={form.preset === null ? "own" : "preset"}
              options={[
                { value: "preset", label: `Those of ${current}` },
                { value: "own", label: "Another GPU" },
              ]}
              onChange={(value) => change({ preset: value === "own" ? null : current })}
            />
          </div>
        ) : null}
        {form.preset === null ? (
          <>
            <div className="col-span-2">
              <TextField
                label="Name of the GPU"
                value={form.gpu}
                onChange={(gpu) => change({ gpu })}
              />
            </div>
            <TextField
              label="Machines"
              value={form.nodes}
              onChange={(nodes) => change({ nodes })}
            />
            <TextField
              label="GPUs in each"
              value={form.gpusPerNode}
              onChange={(gpusPerNode) => change({ gpusPerNode })}
            />
          </>
        ) : null}
        {FIGURES.map((name) => (
          <TextField
            key={name}
            label={LABELS[name].label}
            unit={LABELS[name].unit}
            value={form.figures[name]}
            placeholder={placeholderOf(name, alike)}
            onChange={(value) => change({ figures: { ...form.figures, [name]: value } })}
          />
        ))}
        <TextField
          label="Price of a GPU for an hour"
          value={form.price}
          placeholder="no cost is told"
          onChange={(price) => change({ price })}
        />
        <p className="self-end pb-1 text-muted text-xs">In any currency: costs are in the same.</p>
        <button type="submit" className="sr-only" tabIndex={-1} aria-hidden="true">
          Apply
        </button>
      </form>
      {problem ? <p className="mt-3 text-muted text-sm">{problem}.</p> : null}
    </Dialog>
  );
}

function placeholderOf(name: Figure, alike: HardwareEntry | undefined): string {
  if (alike) return known[name](alike).toLocaleString("en-US", { maximumSignificantDigits: 4 });
  return name === "link" ? `${PCIE}, PCIe 4` : "";
}

interface TextFieldProps {
  label: string;
  value: string;
  unit?: string;
  placeholder?: string;
  onChange: (value: string) => void;
}

function TextField({ label, value, unit, placeholder = "", onChange }: TextFieldProps): ReactNode {
  const id = useId();
  return (
    <div>
      <label htmlFor={id} className="mb-1 block text-sm">
        {label}
        {unit ? <span className="text-muted">, {unit}</span> : null}
      </label>
      <input
        id={id}
        className={`${WIDE_CONTROL} tabular`}
        autoComplete="off"
        value={value}
        placeholder={placeholder}
        onChange={(event) => onChange(event.target.value)}
      />
    </div>
  );
}
