/** What the form of a GPU writes into a loop's hardware, and what it is filled with. Pure. */
import type { JsonObject } from "@/api/types";
import { hardwareName } from "@/document/pools";
import type { LoopDocument } from "@/document/types";
import { isObject } from "@/lib/paths";

export const FIGURES = ["memory_gib", "bf16_tflops", "bandwidth", "link"] as const;
export type Figure = (typeof FIGURES)[number];
const NEEDED: readonly Figure[] = ["memory_gib", "bf16_tflops", "bandwidth"];

/** As typed; an empty text leaves the value out. */
export interface GpuForm {
  /** The preset whose GPU the figures are of; null: a GPU of one's own. */
  preset: string | null;
  gpu: string;
  nodes: string;
  gpusPerNode: string;
  figures: Record<Figure, string>;
  price: string;
}

const text = (value: unknown) => (typeof value === "number" ? String(value) : "");

export function formOf(document: LoopDocument): GpuForm {
  const hardware = isObject(document.rest.hardware) ? document.rest.hardware : {};
  const figures = isObject(hardware.figures) ? hardware.figures : {};
  const name = hardwareName(document);
  const isOwn = typeof hardware.gpu === "string";
  return {
    preset: isOwn || name === "cpu" ? null : name,
    gpu: isOwn ? name : "",
    nodes: text(hardware.nodes) || "1",
    gpusPerNode: text(hardware.gpus_per_node) || "8",
    figures: {
      memory_gib: text(figures.memory_gib),
      bf16_tflops: text(figures.bf16_tflops),
      bandwidth: text(figures.bandwidth),
      link: text(figures.link),
    },
    price: text(hardware.price_per_gpu_hour),
  };
}

const NUMBER = /^\d*\.?\d+$/;

/** Why the form cannot be applied; null: it can. */
export function formProblem(form: GpuForm, isKnown: (gpu: string) => boolean): string | null {
  const typed = [...Object.values(form.figures), form.price].filter((value) => value.trim() !== "");
  const wrong = typed.find((value) => !NUMBER.test(value.trim()));
  if (wrong !== undefined) return `${wrong} is not a positive number`;
  if (Object.values(form.figures).some((value) => value.trim() !== "" && Number(value) === 0))
    return "A figure of a GPU cannot be 0";
  if (form.preset !== null) return null;
  if (form.gpu.trim() === "") return "The GPU needs a name";
  const counts = [form.nodes, form.gpusPerNode].map((value) => value.trim());
  if (counts.some((value) => !/^[1-9]\d*$/.test(value)))
    return "Machines and GPUs are whole numbers";
  const lacking = NEEDED.filter((name) => form.figures[name].trim() === "");
  if (lacking.length > 0 && !isKnown(form.gpu.trim()))
    return "Of a GPU that is not known here, memory, speed and bandwidth are needed";
  return null;
}

/** The fields of `hardware` that describe the machine. */
export function hardwareOf(form: GpuForm): JsonObject {
  const figures = FIGURES.flatMap((name) =>
    form.figures[name].trim() === "" ? [] : [[name, Number(form.figures[name])] as const],
  );
  return {
    ...(form.preset !== null
      ? { preset: form.preset }
      : {
          nodes: Number(form.nodes),
          gpus_per_node: Number(form.gpusPerNode),
          gpu: form.gpu.trim(),
        }),
    ...(figures.length > 0 ? { figures: Object.fromEntries(figures) } : {}),
    ...(form.price.trim() === "" ? {} : { price_per_gpu_hour: Number(form.price) }),
  };
}
