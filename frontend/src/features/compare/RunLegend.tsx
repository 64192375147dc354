import { X } from "lucide-react";
import { Link } from "wouter";
import { formatName, formatPlural } from "@/lib/format";
import { IconButton } from "@/ui/IconButton";
import type { Compared } from "./compared";

interface RunLegendProps {
  compared: readonly Compared[];
  onRemove: (id: string) => void;
}

export function RunLegend({ compared, onRemove }: RunLegendProps) {
  return (
    <ul aria-label="Compared runs" className="mb-3 flex flex-wrap gap-2">
      {compared.map(({ run, color }) => (
        <li
          key={run.id}
          className="flex items-center gap-2 rounded-full border border-line bg-surface py-1 pr-1 pl-3 text-sm"
        >
          <span className="size-3 rounded-full" style={{ background: color }} />
          <Link href={`/runs/${run.id}`} className="max-w-56 truncate font-medium" title={run.id}>
            {run.name}
          </Link>
          <span className="tabular text-muted text-xs">
            {formatName(run.state)}
            {run.step === null ? "" : `, ${formatPlural(run.step, "step")}`}
          </span>
          <IconButton
            label={`Leave ${run.name} out`}
            size="small"
            refusal={compared.length > 2 ? null : "A comparison needs at least two runs"}
            onClick={() => onRemove(run.id)}
            icon={<X size={14} />}
          />
        </li>
      ))}
    </ul>
  );
}
