import type { RunCurves } from "@/api/types";
import { formatSeconds, formatShare } from "@/lib/format";
import type { Compared } from "./useCompared";

interface StageSplitProps {
  compared: readonly Compared[];
  curves: readonly RunCurves[];
}

export function StageSplit({ compared, curves }: StageSplitProps) {
  const splits = compared.map(({ run, color }) => {
    const seconds = curves.find((own) => own.run === run.id)?.stages ?? {};
    const total = Object.values(seconds).reduce((sum, one) => sum + one, 0);
    const share = (stage: string) => {
      const own = seconds[stage];
      return own === undefined ? null : own / (total || 1);
    };
    return { name: run.name, color, seconds, share };
  });
  const greatest = (stage: string) => Math.max(...splits.map(({ share }) => share(stage) ?? 0));
  const stages = [...new Set(splits.flatMap(({ seconds }) => Object.keys(seconds)))].toSorted(
    (a, b) => greatest(b) - greatest(a),
  );
  if (stages.length === 0) return null;
  const most = Math.max(...stages.map(greatest));
  return (
    <section
      aria-label="Where the time went"
      className="rounded-2 border border-line bg-surface p-3"
    >
      <h2 className="mb-2 font-medium text-sm">Where the time went</h2>
      <table className="w-full table-fixed text-xs">
        <thead className="sr-only">
          <tr>
            <th>Stage</th>
            <th>Share of each run's stages</th>
          </tr>
        </thead>
        <tbody>
          {stages.map((stage) => (
            <tr key={stage} className="border-line border-t first:border-t-0">
              <th className="wrap-anywhere w-44 py-2 pr-3 text-left align-top font-normal">
                {stage}
              </th>
              <td className="py-2">
                {splits.map(({ name, color, share, seconds }) => (
                  <Bar
                    key={name}
                    color={color}
                    share={share(stage)}
                    most={most}
                    words={`${name}: ${formatSeconds(seconds[stage])}`}
                  />
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface BarProps {
  color: string;
  share: number | null;
  most: number;
  words: string;
}

function Bar({ color, share, most, words }: BarProps) {
  const width = share === null ? 0 : Math.max(share / most, 0.004);
  return (
    <div className="flex h-4 items-center gap-2" title={words}>
      <span className="min-w-0 flex-1">
        <span
          className="block h-2 rounded-full"
          style={{ background: color, width: `${width * 100}%` }}
        />
      </span>
      <span className="tabular w-24 shrink-0 truncate text-right text-muted">
        {share === null ? "not in this run" : formatShare(share)}
      </span>
      <span className="sr-only">{words}</span>
    </div>
  );
}
