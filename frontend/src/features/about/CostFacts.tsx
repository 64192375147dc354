import type { AboutPreset } from "@/api/types";
import { formatBytes, formatSeconds } from "@/lib/format";

/** How long it takes, what it holds and what it costs, as estimated for the hardware that the loop names. */
export function CostFacts({ cost }: { cost: AboutPreset["cost"] }) {
  const least = cost.is_whole ? "about " : "at least ";
  const step = `${formatSeconds(cost.step_seconds)} a step`;
  const facts: [string, string][] = [
    [
      "Time",
      `${least}${formatSeconds(cost.seconds)}, ${cost.phase ? `${step} of ${cost.phase}` : step}`,
    ],
    ["Memory", `${formatBytes(cost.memory_bytes)} ${cost.gpus > 0 ? "of the fullest GPU" : ""}`],
    [
      "Cost",
      cost.gpus > 0
        ? `${least}${hours(cost.gpu_hours)} GPU-hours on ${cost.hardware}`
        : "none, it runs on this machine",
    ],
  ];
  return (
    <div className="rounded-2 bg-sunken px-3 py-2 text-xs">
      <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-0.5">
        {facts.map(([name, text]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="tabular">{text}</dd>
          </div>
        ))}
      </dl>
      <p className="mt-0.5 text-muted">
        {cost.is_whole
          ? "Estimated; a phase may end earlier."
          : "Estimated for the phases with a known number of steps."}
      </p>
    </div>
  );
}

function hours(value: number): string {
  return value >= 10 ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}
