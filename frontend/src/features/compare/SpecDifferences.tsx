import { X } from "lucide-react";
import { Link } from "wouter";
import { formatName, formatPlural } from "@/lib/format";
import { IconButton } from "@/ui/IconButton";
import { RichText } from "@/ui/RichText";
import { Failed, Loading } from "@/ui/States";
import { type Compared, type Difference, useDifferences } from "./useCompared";

export function SpecDifferences({ compared }: { compared: readonly Compared[] }) {
  const { found, isLoading, error } = useDifferences(compared.map(({ run }) => run.id));
  return (
    <section aria-label="What differs" className="rounded-2 border border-line bg-surface">
      <h2 className="border-line border-b px-3 py-2 font-medium text-sm">What differs</h2>
      {isLoading ? <Loading label="Comparing the loops" rows={3} /> : null}
      {error ? <Failed title="The loops could not be compared" error={error} /> : null}
      {!isLoading && !error && found.length === 0 ? (
        <p className="p-3 text-muted text-sm">
          The loops are the same. Any difference comes from chance: seeds, order, the machine.
        </p>
      ) : null}
      <dl>
        {found.map((one) => (
          <Field key={one.path} difference={one} compared={compared} />
        ))}
      </dl>
    </section>
  );
}

interface FieldProps {
  difference: Difference;
  compared: readonly Compared[];
}

function Field({ difference, compared }: FieldProps) {
  const groups = [...new Set(difference.values)].map((value) => ({
    value,
    runs: compared.filter((_, place) => difference.values[place] === value),
  }));
  return (
    <div className="border-line border-t px-3 py-2 first:border-t-0">
      <dt className="wrap-anywhere font-mono text-muted text-xs" title={difference.path}>
        <RichText text={difference.where} />
      </dt>
      {groups.map(({ value, runs }) => (
        <dd key={value} className="mt-1 flex items-start gap-2 text-sm">
          <span className="flex shrink-0 gap-1 pt-1.5">
            {runs.map(({ run, color }) => (
              <span
                key={run.id}
                role="img"
                aria-label={run.name}
                title={run.name}
                className="size-2.5 rounded-full"
                style={{ background: color }}
              />
            ))}
          </span>
          <span className="wrap-anywhere tabular min-w-0">
            <RichText text={value} />
          </span>
        </dd>
      ))}
    </div>
  );
}

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
