import { Download } from "lucide-react";
import type { Bodies } from "@/api/types";
import { formatBytes, formatPlural, formatWhole } from "@/lib/format";
import { Button } from "@/ui/Button";
import { Select } from "@/ui/Select";
import type { UsedHub } from "./useHub";

interface FoundDatasetProps {
  dataset: Bodies["HubDataset"];
  hub: UsedHub;
  chosen: { config: string | null; split: string } | null;
  onChoose: (config: string | null, split: string) => void;
}

const nameOf = (part: { config: string | null; split: string }) =>
  part.config === null ? part.split : `${part.config} / ${part.split}`;

export function FoundDataset({ dataset, hub, chosen, onChoose }: FoundDatasetProps) {
  const { id, parts, rows, rows_in_file: inFile } = dataset;
  const part = parts.find((one) => chosen && nameOf(one) === nameOf(chosen)) ?? parts[0];
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  if (!part) return null;
  const get = () => hub.download({ kind: "dataset", id, split: part.split, config: part.config });
  return (
    <article aria-label={id} className="px-4 py-3">
      <div className="mb-2 flex flex-wrap items-center gap-3">
        <h3 className="min-w-0 flex-1 font-semibold wrap-anywhere">{id}</h3>
        <span className="w-44">
          <Select
            label="Split"
            value={nameOf(part)}
            options={parts.map((one) => ({ value: nameOf(one), label: nameOf(one) }))}
            onChange={(name) => {
              const next = parts.find((one) => nameOf(one) === name);
              if (next) onChoose(next.config, next.split);
            }}
          />
        </span>
        <Button
          size="small"
          look="primary"
          icon={<Download size={13} />}
          disabled={hub.isBusy}
          onClick={get}
        >
          Download {formatBytes(part.bytes)}
        </Button>
      </div>
      <p className="tabular mb-2 text-muted text-xs">
        Licence {dataset.license ?? "not stated"}. First {formatPlural(rows.length, "row")}
        {inFile === null ? "" : ` of ${formatWhole(inFile)}`} of {dataset.file};{" "}
        {formatBytes(dataset.bytes_read)} were read, nothing is kept.
      </p>
      <div className="overflow-x-auto" role="region" aria-label="Rows" tabIndex={0}>
        <table className="border-separate border-spacing-0 text-xs">
          <thead className="text-left">
            <tr className="[&>th]:border-line [&>th]:border-b [&>th]:px-2 [&>th]:py-1 [&>th]:font-medium [&>th]:font-mono">
              {columns.map((column) => (
                <th key={column}>{column}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              <tr
                key={at}
                className="[&>td]:border-line [&>td]:border-b [&>td]:px-2 [&>td]:py-1 [&>td]:align-top"
              >
                {columns.map((column) => (
                  <td key={column} className="min-w-24 max-w-80">
                    <div className="line-clamp-2 font-mono wrap-anywhere">{shown(row[column])}</div>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </article>
  );
}

function shown(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
